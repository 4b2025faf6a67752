"""Tensors as figures: which numbers are drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nethook.errors import InputsError, OptionError
from nethook.figures.tensor_specs import (
    activations_spec,
    as_array,
    attention_spec,
    feature_maps_spec,
    filters_spec,
    snapshots_spec,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.ones(2, requires_grad=True), [1.0, 1.0]),
        (torch.tensor([3 + 4j]), [5.0]),
        (torch.tensor([1.5], dtype=torch.bfloat16), [1.5]),
        (torch.tensor([True, False]), [1.0, 0.0]),
        ([1, 2], [1.0, 2.0]),
        ((torch.ones(1), torch.zeros(3)), [1.0]),  # the first tensor of a nested output
    ],
)
def test_numbers_of_anything(value: object, expected: list[float]) -> None:
    array = as_array(value, "tape")
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, expected)


def test_what_has_no_numbers_is_refused_with_its_type() -> None:
    with pytest.raises(InputsError) as error:
        as_array("text", "tape")
    assert str(error.value) == (
        "`tape` must be a tensor or an array, or hold one at `address`; got str."
    )


def test_pictures_that_are_left_out_are_counted() -> None:
    maps = np.random.default_rng(0).normal(size=(2, 5, 3, 3))
    spec = feature_maps_spec(maps, "conv", sample=-1, channels=4, each=False)
    assert "first 4 of 5 channels" in str(spec["layout"])
    whole = feature_maps_spec(maps, "conv", sample=0, channels=64, each=False)
    assert "channels" not in str(whole["layout"]["title"])


@pytest.mark.parametrize("sample", [2, -3])
def test_a_sample_outside_the_batch_is_refused(sample: int) -> None:
    text = f"`sample` must be a number below 2, the size of the batch; got {sample}."
    with pytest.raises(OptionError) as error:
        feature_maps_spec(np.ones((2, 1, 3, 3)), "", sample=sample, channels=1, each=False)
    assert str(error.value) == text
    with pytest.raises(OptionError) as error:
        attention_spec(np.ones((2, 1, 3, 3)), "", tokens=None, sample=sample, heads=1)
    assert str(error.value) == text


@pytest.mark.parametrize("shape", [(6, 3, 3, 3), (6, 2, 3, 3), (6, 2, 3), (6, 2)])
def test_filters_of_every_shape_are_drawn(shape: tuple[int, ...]) -> None:
    spec = filters_spec(np.ones(shape), "conv", most=4, each=False)
    assert spec["data"]
    assert "Filters of conv" in str(spec["layout"])


def test_tokens_name_queries_or_keys() -> None:
    weights = np.full((1, 2, 3), 1 / 3)
    for tokens in (["a", "b"], ["x", "y", "z"]):
        spec = attention_spec(weights, "", tokens=tokens, sample=0, heads=1)
        assert tokens[-1] in str(spec)
    with pytest.raises(OptionError, match="as many as the 2 queries or the 3 keys; got 4"):
        attention_spec(weights, "", tokens=list("abcd"), sample=0, heads=1)


def test_snapshots_are_in_order_of_their_steps() -> None:
    spec = snapshots_spec(
        {20: np.ones((1, 2, 2)), 3: np.zeros((1, 2, 2))}, "", sample=0, channels=1
    )
    text = str(spec["layout"])
    assert text.index("step 3") < text.index("step 20")


def test_activations_name_every_layer() -> None:
    spec = activations_spec({"first": np.arange(100.0), "second": np.zeros(0)})
    assert "first" in str(spec)
