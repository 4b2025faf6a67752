"""Path patching: exact numbers of the compiled network, and relations that hold on every model."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.circuits.paths import paths
from nethook.interp.circuits.stream import find_stream
from tests.interp import compiled_networks, families

BASE = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 1]])
SOURCE = torch.tensor([[0, 7, 2, 3, 4, 5, 6, 1]])


def logit(out: torch.Tensor) -> torch.Tensor:
    return out[:, -1, 2]


def test_the_previous_token_head_acts_through_the_keys_alone() -> None:
    model = compiled_networks.induction()
    sender = ("blocks.0.attention", 0)
    found = paths(model, BASE, SOURCE, sender, metric=logit)
    assert found.sites == ("blocks.1.attention", "unembed")
    assert float(found.effect[0]) == pytest.approx(-0.87496, abs=2e-5)
    assert float(found.effect[1]) == 0.0
    parts = [f"blocks.1.attention.{part}" for part in "qkv"]
    through = paths(model, BASE, SOURCE, sender, metric=logit, receivers=parts)
    assert through.effect.flatten().tolist()[::2] == [0.0, 0.0]
    assert float(through.effect[1]) == float(found.effect[0])


@pytest.mark.parametrize("head", [1, 2])
def test_every_other_edge_is_exactly_zero(head: int) -> None:
    model = compiled_networks.induction()
    found = paths(model, BASE, SOURCE, ("blocks.0.attention", head), metric=logit)
    assert (found.effect == 0).all()


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.fc(x)
        return out


class LinearBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Part(), Part()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.first(x)
        return x + self.second(x)


def test_on_a_linear_model_the_edges_of_a_sender_add_up_to_its_whole_effect() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(LinearBlock(), LinearBlock()), nn.Linear(4, 1)).double()
    base, source = torch.randn(2, 3, 5, 4, dtype=torch.float64)

    def metric(out: torch.Tensor) -> torch.Tensor:
        return out.sum((1, 2))

    found = paths(model, base, source, "0.0.first", metric=metric)
    assert found.sites == ("0.0.second", "0.1.first", "0.1.second", "1")
    with nethook.trace(model, "0.0.first") as tape:
        model(source)
    patch = nethook.edits.patch(tape["0.0.first"].output)
    with nethook.edit(model, outputs={"0.0.first": patch}):
        patched = metric(model(base))
    effect = (patched - metric(model(base))).detach()
    torch.testing.assert_close(found.effect.sum((0, 1)), effect, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "llama", "neox", "falcon", "vit", "t5"])
def test_relations_that_hold_on_every_model(name: str) -> None:
    model, inputs = families.built(name)
    key = "decoder_input_ids" if name == "t5" else next(iter(inputs))
    other = {**inputs, key: inputs[key].flip(0)}

    def metric(out: object) -> torch.Tensor:
        logits = out.logits  # type: ignore[attr-defined]
        return logits[:, -1, 3] if logits.ndim == 3 else logits[:, 0]

    same = paths(model, inputs, inputs, "embedding", metric=metric)
    assert (same.effect == 0).all()
    found = paths(model, inputs, other, "embedding", metric=metric)
    assert (found.effect != 0).any()
    last = found.sites[-1]
    # What the last part wrote is read by the readout alone: patching it is patching the edge.
    write = find_stream(model, inputs).writes[-1]
    edge = paths(model, inputs, other, write, metric=metric)
    assert edge.sites == (last,)
    with torch.no_grad():
        with nethook.trace(model, write) as tape:
            model(**other)
        with nethook.edit(model, outputs={write: nethook.edits.patch(tape[write].output)}):
            exact = metric(model(**inputs))
    torch.testing.assert_close(edge.values[0, 0], exact, rtol=1e-4, atol=1e-6)
    assert not nethook.audit(model)


def test_heads_of_a_write_add_up_before_a_linear_reader() -> None:
    model = compiled_networks.induction()
    receivers = ["blocks.1.attention.k"]
    whole = paths(model, BASE, SOURCE, "blocks.0.attention", metric=logit, receivers=receivers)
    one = paths(model, BASE, SOURCE, ("blocks.0.attention", 0), metric=logit, receivers=receivers)
    torch.testing.assert_close(whole.effect, one.effect)  # heads 1 and 2 write what is not read


def test_errors_say_what_to_type() -> None:
    model = compiled_networks.induction()
    with pytest.raises(NoSuchSiteError, match="'unembed' writes nothing to the residual stream"):
        paths(model, BASE, SOURCE, "unembed", metric=logit)
    with pytest.raises(OptionError, match="`head` must be a number from 0 to 2"):
        paths(model, BASE, SOURCE, ("blocks.0.attention", 3), metric=logit)
    with pytest.raises(OptionError, match="`source` must have the shapes of `base`"):
        paths(model, BASE, SOURCE[:, :6], "blocks.0", metric=logit)
    bert, inputs = families.built("bert")
    with pytest.raises(OptionError, match="the layout of these blocks is post-norm"):
        paths(bert, inputs, inputs, "embedding", metric=logit)
