"""Values of any kind, matched to an output and blended with it."""

import numpy as np
import pytest
import torch

from nethook.classic import (
    apply_ablation_replacement,
    get_and_match_shape,
    make_matching_tensor,
)


@pytest.mark.parametrize(
    ("shape", "data", "expected"),
    [
        ((), (2, 4, 5, 5), (1, 1, 1, 1)),
        ((4,), (2, 4, 5, 5), (1, 4, 1, 1)),
        ((4, 5, 5), (2, 4, 5, 5), (1, 4, 5, 5)),
        ((2, 4, 5, 5), (2, 4, 5, 5), (2, 4, 5, 5)),
        ((7,), (2, 7, 3), (1, 7, 1)),  # dimension 1 is the channels, also where it is not
        ((4,), (2, 4), (1, 4)),
    ],
)
def test_values_are_aligned_at_the_channels(shape, data, expected):
    values = {"a": np.ones(shape)}
    found = make_matching_tensor(values, "a", torch.zeros(data))
    assert found.shape == expected
    assert found.dtype == torch.float32
    assert values["a"] is found  # kept for the next time
    assert make_matching_tensor({}, "a", torch.zeros(data)) is None


def test_the_default_rule():
    x = torch.ones(1, 2)
    assert apply_ablation_replacement(x) is x
    assert torch.equal(apply_ablation_replacement(x, None, [1, 0]), torch.tensor([[0.0, 1.0]]))
    blended = apply_ablation_replacement(x, None, ablation=0.5, replacement=3)
    assert torch.equal(blended, torch.full((1, 2), 2.0))


def test_what_a_gradient_flows_to_is_not_replaced():
    """Old: AssertionError, wrong dimensions."""
    values = {"a": torch.ones(4, requires_grad=True)}
    leaf = values["a"]
    make_matching_tensor(values, "a", torch.zeros(2, 4, 5, 5)).sum().backward()
    assert values["a"] is leaf
    assert torch.equal(leaf.grad, torch.ones(4))


def test_images_of_another_size_are_resized_by_max_pooling():
    data = torch.zeros(1, 4, 2, 2)
    mask = torch.zeros(4, 4, 4)
    mask[0, 3, 3] = 1
    matched = get_and_match_shape({"m": mask}, "m", data)
    assert matched.shape == (1, 4, 2, 2)
    assert matched[0, 0].tolist() == [[0, 0], [0, 1]]


def test_channels_that_are_missing_are_zero():
    """Old: the zeros were written over the values."""
    matched = get_and_match_shape({"m": torch.ones(2, 1, 1)}, "m", torch.zeros(1, 4, 2, 2))
    assert matched.flatten().tolist() == [1, 1, 0, 0]
    assert get_and_match_shape({}, "m", torch.zeros(1, 4, 2, 2)) is None
    wide = get_and_match_shape({"m": 0.5}, "m", torch.zeros(2, 3))
    assert wide.shape == (1, 1)
