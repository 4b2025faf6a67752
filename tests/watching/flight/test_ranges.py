"""The range of a tensor, against torch."""

from __future__ import annotations

import pytest
import torch

from nethook.watching.flight.ranges import Range, is_finite, range_of, ranges_of

NAN, INF = float("nan"), float("inf")


def test_a_range_is_that_of_the_finite_elements():
    x = torch.tensor([[1.0, -2.0, 0.0], [NAN, INF, -INF]])
    assert range_of(x, "x") == Range("x", (2, 3), "float32", -2.0, 1.0, 1, 1, 1, 1)
    assert not range_of(x).finite
    assert range_of(torch.ones(2)).finite


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.tensor([1.0, 2.5]), "x float32[2], from 1 to 2.5"),
        (torch.tensor([0.0, NAN]), "x float32[2], from 0 to 0, 1 zero, 1 NaN"),
        (torch.full((1000,), INF), "x float32[1000], 1,000 +Inf"),
        (torch.tensor([-INF], dtype=torch.bfloat16), "x bfloat16[1], 1 −Inf"),
    ],
)
def test_in_words(tensor, text):
    assert str(range_of(tensor, "x")) == text


def test_as_plain_data():
    data = range_of(torch.ones(2, 3), "x").to_dict()
    assert data["shape"] == [2, 3]
    assert (data["min"], data["max"], data["nan"]) == (1.0, 1.0, 0)


def test_what_cannot_be_read_has_none():
    assert range_of(torch.ones(2, 2).to_sparse()) is None
    assert range_of(torch.ones(2, device="meta")) is None


def test_tensors_in_a_value_are_named_by_their_paths():
    value = {"a": torch.ones(1), "b": [torch.zeros(2), torch.ones(0)]}
    assert [each.name for each in ranges_of(value, "inputs")] == [
        'inputs["a"]',
        'inputs["b"][0]',
    ]  # the last has no elements


@pytest.mark.parametrize(
    ("value", "finite"),
    [
        (torch.ones(2), True),
        (torch.tensor([1.0, NAN]), False),
        (torch.tensor([1 + 1j, complex(INF, 0)]), False),
        (torch.tensor([1, 2]), True),
        (torch.ones(0), True),
        ({"a": [torch.ones(1), torch.tensor(-INF)]}, False),
        ((1.0, None, "text"), True),
    ],
)
def test_whether_a_value_is_finite(value, finite):
    assert is_finite(value) is finite
