"""Relations that must hold on every model, whatever it computes: no truth is needed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook import interp
from tests.interp import compiled_networks, families
from tests.tracing import architectures

LANGUAGE = tuple(made.__name__ for made in families.DECODERS)
EVERY = (*LANGUAGE, "bert", "modernbert", "vit", "t5", "resnet", "lstm")


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.out(self.rnn(x)[0])
        return out


def built(name: str) -> tuple[nn.Module, Any, Any]:
    """A model, and two inputs."""
    if name == "lstm":
        torch.manual_seed(0)
        return Recurrent().eval(), *torch.randn(2, 2, 5, 6)
    if name == "resnet":
        model, inputs = architectures.built("resnet")
    else:
        model, inputs = families.built(name)
    if isinstance(inputs, torch.Tensor):
        return model, inputs, inputs.flip(0)
    other = {key: value.flip(0) for key, value in inputs.items()}
    return model, inputs, other


def metric(out: Any) -> torch.Tensor:
    logits = getattr(out, "logits", out)
    return logits.flatten(1)[:, -3:].sum(-1)


def call(model: nn.Module, inputs: Any) -> Any:
    with torch.no_grad():
        return model(**inputs) if isinstance(inputs, dict) else model(inputs)


def site(name: str, model: nn.Module, inputs: Any) -> str:
    """A place through which everything passes."""
    if name in ("lstm", "resnet"):
        return {"lstm": "rnn", "resnet": "resnet.encoder.stages.0"}[name]
    return interp.roles(model, inputs).blocks[-1]


@pytest.mark.parametrize("name", EVERY)
def test_a_source_like_the_base_changes_nothing_and_a_whole_cut_everything(name: str) -> None:
    model, base, source = built(name)
    at = site(name, model, base)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    state = torch.get_rng_state()
    same = interp.sweep(model, base, at=at, change=interp.take(base), metric=metric, rows=1)
    assert (same.effect == 0).all()
    cut = interp.sweep(model, base, at=at, change=interp.take(source), metric=metric, rows=1)
    assert torch.equal(cut.values[0, 0], metric(call(model, source)))  # bit for bit
    assert torch.equal(cut.base, metric(call(model, base)))
    assert not nethook.audit(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_padding_changes_nothing(name: str) -> None:
    model, inputs = families.built(name)
    ids = inputs["input_ids"]
    pad = torch.zeros(2, 3, dtype=torch.long)
    padded = {
        "input_ids": torch.cat([pad, ids], 1),
        "attention_mask": torch.cat([pad, torch.ones_like(ids)], 1),
    }
    mask = padded["attention_mask"]
    padded["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
    at = interp.roles(model, inputs).blocks[0]
    asked: dict[str, Any] = {"at": at, "over": "positions", "change": nethook.edits.zero()}
    whole = interp.sweep(model, padded, metric=lambda out: out.logits[:, -1, 3], **asked)
    plain = interp.sweep(model, inputs, metric=lambda out: out.logits[:, -1, 3], **asked)
    torch.testing.assert_close(whole.values, plain.values, rtol=1e-4, atol=1e-6)


def _permuted(model: compiled_networks.Transformer, order: list[int]) -> nn.Module:
    """The same function with the heads of every layer in another order."""
    twin = copy.deepcopy(model)
    for block in twin.blocks:
        attention = block.attention
        size = attention.q.weight.shape[0] // attention.heads
        rows = torch.cat([torch.arange(head * size, (head + 1) * size) for head in order])
        with torch.no_grad():
            for part in (attention.q, attention.k, attention.v):
                part.weight.copy_(part.weight[rows])
            attention.o.weight.copy_(attention.o.weight[:, rows])
    return twin


def _random(heads: int = 3) -> compiled_networks.Transformer:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return compiled_networks.Transformer(12, 8, 18, heads, 6, None).double().eval()


STUDIES: dict[str, Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sweep": lambda model, base, source: (
        interp.sweep(
            model, base, at="blocks.*", over="heads", change=interp.take(source), metric=metric
        ).effect
    ),
    "attribute": lambda model, base, source: (
        interp.attribute(model, base, source, at="blocks.*", over="heads", metric=metric).effect
    ),
    "keys": lambda model, base, source: (
        interp.attribute(
            model, base, source, at="blocks.*", over="heads", part="k", metric=metric
        ).effect
    ),
}
TEXTS = compiled_networks.repeats(2)[0], compiled_networks.repeats(2, seed=5)[0]


@pytest.mark.parametrize("study", STUDIES)
def test_permuting_heads_permutes_the_results(study: str) -> None:
    model, order = _random(), [2, 0, 1]
    effect = STUDIES[study](model, *TEXTS)
    permuted = STUDIES[study](_permuted(model, order), *TEXTS)
    torch.testing.assert_close(permuted, effect[:, order], rtol=1e-8, atol=1e-12)
    assert (effect != 0).any()


@pytest.mark.parametrize("study", STUDIES)
def test_rotating_the_residual_basis_changes_nothing(study: str) -> None:
    model = _random()
    random = torch.Generator().manual_seed(1)
    turn, _ = torch.linalg.qr(torch.randn(18, 18, generator=random, dtype=torch.float64))
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.embed.weight.copy_(model.embed.weight @ turn)
        twin.places.copy_(model.places @ turn)
        twin.unembed.weight.copy_(model.unembed.weight @ turn)
        for block in twin.blocks:
            for part in (block.attention.q, block.attention.k, block.attention.v):
                part.weight.copy_(part.weight @ turn)
            block.attention.o.weight.copy_(turn.T @ block.attention.o.weight)
    torch.testing.assert_close(
        STUDIES[study](twin, *TEXTS), STUDIES[study](model, *TEXTS), rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("name", LANGUAGE)
def test_what_verify_runs_is_what_a_sweep_measures(name: str) -> None:
    """Two ways to the same numbers: one cell after the other, and the engine of sweeps."""
    model, base, source = built(name)
    at = list(interp.roles(model, base).blocks)
    found = interp.attribute(model, base, source, at=at, over="positions", metric=metric)
    checked = found.verify(top=14, sample=0)
    exact = interp.sweep(
        model, base, at=at, over="positions", change=interp.take(source), metric=metric
    )
    # A sweep says which part of a nested output it changed.
    assert [name.removesuffix("[0]") for name in exact.sites] == list(found.sites)
    places = zip(checked.sites, checked.cells, strict=True)
    swept = torch.stack([exact.mean[found.sites.index(s), int(c)] for s, c in places])
    torch.testing.assert_close(checked.exact, swept, rtol=1e-3, atol=1e-6)
