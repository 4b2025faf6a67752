"""Fans against a count, and weights as matrices."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from nethook.init.dataflow.fans import layer_weights

convolutions = st.builds(
    dict,
    transposed=st.booleans(),
    groups=st.sampled_from([1, 2, 4]),
    wide=st.integers(1, 3),
    narrow=st.integers(1, 3),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
)


@settings(max_examples=60, deadline=None)
@given(case=convolutions)
def test_fans_are_what_a_count_gives(case):
    """All weights 1: an output is then the number of weights in it, a gradient that of an input."""
    cls = nn.ConvTranspose1d if case["transposed"] else nn.Conv1d
    groups = case["groups"]
    layer = cls(
        case["wide"] * groups, case["narrow"] * groups, case["kernel"],
        stride=case["stride"], groups=groups, bias=False,
    )  # fmt: skip
    nn.init.ones_(layer.weight)
    x = torch.ones(1, layer.in_channels, 120, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    # Away from the ends, and over whole strides, so that every place counts as often.
    inner_y = y[..., 12 : 12 + 6 * 12].mean()
    inner_x = x.grad[..., 12 : 12 + 6 * 6].mean()
    (weight,) = layer_weights(layer)
    fan_in, fan_out = weight.layout.fans(tuple(layer.weight.shape))
    assert fan_in == pytest.approx(float(inner_y.detach()))
    assert fan_out == pytest.approx(float(inner_x))


@pytest.mark.parametrize(
    ("layer", "fans"),
    [
        (nn.Linear(7, 5), (7, 5)),
        (nn.Conv2d(64, 64, 3, groups=64), (9, 9)),  # torch says (9, 576)
        (nn.ConvTranspose2d(64, 16, 3), (576, 144)),  # torch says (144, 576)
        (nn.ConvTranspose2d(64, 16, 4, stride=2), (256, 256)),
        (nn.Bilinear(4, 5, 6), (20, 30)),
        (nn.Embedding(100, 16), (1, 16)),
        (nn.MultiheadAttention(64, 4), (64, 64)),  # torch says (64, 192)
        (nn.LSTM(20, 30), (20, 30)),  # torch says (20, 120)
    ],
    ids=lambda each: type(each).__name__,
)
def test_fans_by_name(layer, fans):
    weight = layer_weights(layer)[0]
    parameter = dict(layer.named_parameters())[weight.name]
    assert weight.layout.fans(tuple(parameter.shape)) == fans


@settings(max_examples=40, deadline=None)
@given(
    form=st.sampled_from(["Conv2d", "ConvTranspose2d", "Linear"]),
    groups=st.sampled_from([1, 2]),
    seed=st.integers(0, 99),
)
def test_matrices_and_back(form, groups, seed):
    torch.manual_seed(seed)
    layer = nn.Linear(4, 6) if form == "Linear" else getattr(nn, form)(4, 6, 3, groups=groups)
    layout = layer_weights(layer)[0].layout
    shape = tuple(layer.weight.shape)
    assert torch.equal(layout.weight(layout.matrices(layer.weight), shape), layer.weight)
