"""Layouts: CNN, ViT with class and register tokens, Swin, and shapes that are none."""

import pytest
import torch

from nethook.errors import OptionError
from nethook.interp.attributions.cams.layouts import FIRST, LAST, TOKENS, Layout, find_layout


@pytest.mark.parametrize(
    ("shape", "picture", "expected"),
    [
        ((2, 512, 7, 7), (224, 224), Layout(FIRST, 7, 7)),
        ((2, 7, 7, 768), (224, 224), Layout(LAST, 7, 7)),
        ((2, 64, 8, 16), (128, 256), Layout(FIRST, 8, 16)),
        ((2, 8, 16, 64), (128, 256), Layout(LAST, 8, 16)),
        ((2, 3, 9, 10), (224, 250), Layout(FIRST, 9, 10)),  # rounded differently by a stride
        ((2, 197, 768), (224, 224), Layout(TOKENS, 14, 14, 1)),
        ((2, 196, 768), (224, 224), Layout(TOKENS, 14, 14, 0)),
        ((2, 261, 384), (224, 224), Layout(TOKENS, 16, 16, 5)),  # a class and four registers
        ((2, 49, 768), (224, 224), Layout(TOKENS, 7, 7, 0)),  # the last stage of a Swin
        ((2, 129, 32), (64, 128), Layout(TOKENS, 8, 16, 1)),
    ],
)
def test_layouts(shape, picture, expected):
    assert find_layout(shape, picture, "layer") == expected


def test_values_with_channels_first():
    value = torch.arange(24.0).reshape(1, 2, 3, 4)
    assert torch.equal(Layout(FIRST, 3, 4).channels_first(value), value)
    assert torch.equal(Layout(LAST, 2, 3).channels_first(value), value.permute(0, 3, 1, 2))
    tokens = torch.arange(14.0).reshape(1, 7, 2)  # one token, then two rows of three
    found = Layout(TOKENS, 2, 3, 1).channels_first(tokens)
    assert found[0, 0].tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]


def test_a_grid_by_hand():
    assert find_layout((1, 13, 4), (64, 64), "x", (3, 4)) == Layout(TOKENS, 3, 4, 1)
    assert find_layout((1, 4, 4, 4), (64, 64), "x", (4, 4)) == Layout(FIRST, 4, 4)
    with pytest.raises(OptionError, match=r"`grid` must be the height and width .*; got \(9, 9\)"):
        find_layout((1, 13, 4), (64, 64), "x", (9, 9))


def test_what_has_no_places():
    with pytest.raises(OptionError, match=r"`at` must name a layer with places: .*shape \(2, 10\)"):
        find_layout((2, 10), (8, 8), "fc")
    with pytest.raises(OptionError, match=r"`grid` must be .*its 40 tokens are no grid"):
        find_layout((2, 40, 3), (8, 4096), "x")
