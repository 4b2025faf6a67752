"""Points see values and put back what is made of them."""

from __future__ import annotations

import pytest
import torch

import nethook
from nethook.errors import UnfiredError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.attention.heads import heads
from nethook.interp.estimates.points import Point, attach, head_points
from tests.interp import families


@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom", "gpt2_eager"])
def test_heads_are_dimension_1_whatever_the_operation(name: str) -> None:
    model, inputs = families.built(name)
    points = head_points(heads(model, inputs).rows, "z")
    shapes = []

    def silence(_: Point, value: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(value.shape))
        return torch.zeros_like(value)

    with torch.no_grad(), attach(model, points, silence):
        model(**inputs)
    assert shapes == [(2, 4, 7, 8)] * 2


def test_every_part_is_seen_and_nothing_changes_where_none_is_returned() -> None:
    model, inputs = families.built("llama")
    rows = heads(model, inputs).rows
    points = [point for part in ("q", "k", "v", "z") for point in head_points(rows, part)]
    seen: dict[str, tuple[int, ...]] = {}

    def note(point: Point, value: torch.Tensor) -> None:
        seen[point.name] = tuple(value.shape)

    with torch.no_grad():
        expected = model(**inputs).logits
        with attach(model, [*points, Point("model.norm")], note):
            assert torch.equal(model(**inputs).logits, expected)
    op = "model.layers.0.self_attn/scaled_dot_product_attention#0"
    assert seen[f"{op} (q)"] == (2, 4, 7, 8)
    assert seen[f"{op} (k)"] == seen[f"{op} (v)"] == (2, 2, 7, 8)
    assert len(seen) == 9


def test_shared_keys_that_were_repeated_are_one_head() -> None:
    model, inputs = families.built("llama")
    row = heads(model, inputs)[0]
    point = Point(row.address, "k", row)
    assert point.heads == 2
    assert point.slots(1, there=2) == [1]
    assert point.slots(1, there=4) == [2, 3]


def test_what_did_not_run_is_an_error() -> None:
    model, inputs = families.built("bert")
    with (
        pytest.raises(UnfiredError),
        torch.no_grad(),
        attach(model, [Point("bert.encoder.layer.0/relu#0")], lambda point, value: None),
    ):
        model(**inputs)


@pytest.mark.parametrize("name", ["bloom", "gemma2", "gpt2_eager"])
def test_parts_of_written_out_attention_are_its_own_arguments(name: str) -> None:
    """Softmax of q, k as they are seen is that of the model, and mixing v with it gives z."""
    model, inputs = families.built(name)
    row = heads(model, inputs)[0]
    points = [point for part in ("q", "k", "v", "z") for point in head_points([row], part)]
    seen: dict[str, torch.Tensor] = {}

    def note(point: Point, value: torch.Tensor) -> torch.Tensor:
        seen[point.part] = value
        return value.clone()

    kept = {}
    with torch.no_grad():
        expected = model(**inputs).logits
        read = {row.probabilities: lambda value: kept.update(p=value)}
        with nethook.edit(model, outputs=read), attach(model, points, note):
            assert torch.equal(model(**inputs).logits, expected)
    assert seen["q"].shape == (2, 4, 7, 8) == seen["k"].shape
    torch.testing.assert_close(kept["p"] @ seen["v"], seen["z"])


def test_parts_of_torchs_own_attention_are_put_back_as_they_were_found() -> None:
    model, inputs = families.built("encoder")
    rows = heads(model, inputs).rows
    points = [head_points(rows, part)[0] for part in ("q", "k", "v", "z")]
    with layer_by_layer(), torch.no_grad():
        plain = model(inputs)
        with attach(model, points, lambda point, value: value.clone()):
            torch.testing.assert_close(model(inputs), plain, rtol=1e-5, atol=1e-6)

        def first_query(point: Point, value: torch.Tensor) -> torch.Tensor | None:
            return value * 2 if point.part == "q" else None

        with attach(model, points, first_query):
            assert not torch.allclose(model(inputs), plain)
        with attach(model, points, lambda point, value: None):
            assert torch.equal(model(inputs), plain)
