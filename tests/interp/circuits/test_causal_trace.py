"""Causal tracing against ROME's own function, written anew."""

from __future__ import annotations

import pytest
import torch

import nethook
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.circuits.causal_trace import causal_trace
from nethook.interp.results.sweep import Sweep
from tests.interp import families

ANSWER, SUBJECT, SAMPLES = 5, slice(2, 5), 4
LAYERS = ("transformer.h.0", "transformer.h.1")


def probability(out: object) -> torch.Tensor:
    return out.logits[:, -1].softmax(-1)[:, ANSWER]  # type: ignore[attr-defined]


def trace_with_patch(
    model: torch.nn.Module, text: torch.Tensor, noise: torch.Tensor, restored: dict[str, int]
) -> torch.Tensor:
    """ROME's: row 0 is clean, the others get noise; some layers' states at a position are clean."""
    begin, end = SUBJECT.start, SUBJECT.stop

    def hook(name: str):  # type: ignore[no-untyped-def]
        def patch(_module: object, _args: object, output: torch.Tensor) -> torch.Tensor:
            if name == "transformer.wte":
                output = output.clone()
                output[1:, begin:end] += noise
            else:
                output = output.clone()
                output[1:, restored[name]] = output[0, restored[name]]
            return output

        return patch

    named = dict(model.named_modules())
    handles = [
        named[name].register_forward_hook(hook(name)) for name in ("transformer.wte", *restored)
    ]
    try:
        with torch.no_grad():
            out = model(input_ids=text.repeat(len(noise) + 1, 1))
        return torch.softmax(out.logits[:, -1, :], dim=1)[:, ANSWER]
    finally:
        for handle in handles:
            handle.remove()


@pytest.fixture(scope="module")
def text() -> torch.Tensor:
    return families.tokens(rows=1)


@pytest.fixture(scope="module")
def noise(text: torch.Tensor) -> torch.Tensor:
    model, _ = families.built("gpt2")
    embedded = model.transformer.wte(text)[0, SUBJECT].detach()
    drawn = torch.randn(SAMPLES, 3, families.WIDTH, generator=torch.Generator().manual_seed(0))
    return 3.0 * float(embedded.std()) * drawn


def traced(text: torch.Tensor, **more: object) -> Sweep:
    model, _ = families.built("gpt2")
    asked = {"at": "transformer.h.*", "metric": probability, "samples": SAMPLES} | more
    return causal_trace(model, text, SUBJECT, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("window", [1, 2])
def test_it_equals_rome_bit_for_bit(window: int, text: torch.Tensor, noise: torch.Tensor) -> None:
    model, _ = families.built("gpt2")
    found = traced(text, window=window)
    assert found.sites == LAYERS
    assert found.values.shape == (2, 7, SAMPLES)
    corrupted = trace_with_patch(model, text, noise, {})
    assert torch.equal(found.base, corrupted[1:])
    assert found.source is not None
    assert torch.equal(found.source, corrupted[:1].expand(SAMPLES))
    for layer in range(2):
        low, high = max(0, layer - window // 2), min(2, layer - (-window // 2))
        for position in range(7):
            restored = dict.fromkeys(LAYERS[low:high], position)
            expected = trace_with_patch(model, text, noise, restored)[1:]
            assert torch.equal(found.values[layer, position], expected)
            assert float(found.values[layer, position].mean()) == float(expected.mean())


def test_without_noise_nothing_changes(text: torch.Tensor) -> None:
    assert (traced(text, noise=0.0).effect == 0).all()


def test_restoring_everything_gives_the_clean_score(text: torch.Tensor) -> None:
    """The last layer at the last position is all that the answer is read from."""
    found = traced(text)
    assert torch.equal(found.values[1, -1], found.source)
    assert (found.recovered[1, -1] == 1).all()
    assert (found.effect[1, :-1] == 0).all()


def test_parts_of_blocks_and_a_named_embedding(text: torch.Tensor) -> None:
    found = traced(text, at="transformer.h.*.mlp", embedding="transformer.wte")
    assert found.sites == ("transformer.h.0.mlp", "transformer.h.1.mlp")
    again = traced(text, at="transformer.h.*.mlp", seed=0)
    assert torch.equal(found.values, again.values)
    assert not torch.equal(traced(text, at="transformer.h.*.mlp", seed=1).base, found.base)


def test_errors_say_what_to_type(text: torch.Tensor) -> None:
    model, _ = families.built("gpt2")
    with pytest.raises(OptionError, match="`samples` must be a positive number; got 0"):
        traced(text, samples=0)
    with pytest.raises(OptionError, match="`subject` must name positions of the text, 0 to 6"):
        causal_trace(model, text, [9], at="transformer.h.*", metric=probability)
    with pytest.raises(OptionError, match=r"`tokens` must be one text, \(1, positions\)"):
        traced(families.tokens(rows=2))
    vit, images = families.built("vit")
    one = {"pixel_values": images["pixel_values"][:1]}
    with pytest.raises(NoSuchSiteError, match=r"no nn\.Embedding was given the text"):
        causal_trace(vit, one, slice(0, 1), at="vit.layers.*", metric=probability)


def test_nothing_is_left_behind(text: torch.Tensor) -> None:
    state = torch.get_rng_state()
    traced(text)
    assert torch.equal(torch.get_rng_state(), state)
    assert not nethook.audit(families.built("gpt2")[0])
