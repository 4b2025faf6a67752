"""Places of values by their shape, and sums over the rest."""

import pytest
import torch

from nethook.interp.results.places import kind_of, largest, place_names, summed


@pytest.mark.parametrize(
    ("shape", "is_input", "kind"),
    [
        ((2, 3, 8, 8), True, "pixels"),
        ((2, 16, 4, 4), False, "pixels"),
        ((2, 7, 32), False, "tokens"),
        ((2, 1, 1024), True, "samples"),
        ((2, 20, 5), True, "tokens"),
        ((2, 1024), True, "samples"),
        ((2, 30), True, "features"),
        ((2, 1024), False, "features"),
        ((2, 3, 4, 4, 4), True, "elements"),
        ((2,), True, "elements"),
    ],
)
def test_kinds(shape, is_input, kind):
    assert kind_of(shape, is_input=is_input) == kind


def test_sums_and_largest():
    value = torch.tensor([[[1.0, -5.0], [2.0, 1.0]]])  # (1, 2, 2)
    assert summed(value, "tokens").tolist() == [[-4.0, 3.0]]
    assert largest(value, "tokens").tolist() == [[-5.0, 2.0]]
    assert summed(value, "samples").tolist() == [[3.0, -4.0]]
    assert summed(value[0], "features").tolist() == value[0].tolist()
    assert summed(torch.ones(1, 3, 2, 2), "pixels").tolist() == [[[3.0, 3.0], [3.0, 3.0]]]


def test_names():
    assert place_names((2, 2), "pixels", None) == ["0, 0", "0, 1", "1, 0", "1, 1"]
    assert place_names((2,), "features", ["a", "b"]) == ["a", "b"]
    assert place_names((3,), "tokens", None) == ["0", "1", "2"]
