"""Activations that are one operation, or several."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.init import moments
from nethook.init.dataflow.composites import Composites
from nethook.init.dataflow.recorder import Flow, record

Function = Callable[[torch.Tensor], torch.Tensor]


class Applies(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def last(function: Function) -> tuple[Composites, int, Flow]:
    """The composites of a forward, and the value that it returned."""
    flow = record(Applies(function), nethook.inputs(torch.randn(6, 4)))
    return Composites(flow), flow.nodes[-1].index, flow


def gelu_by_hand(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


@pytest.mark.parametrize(
    ("function", "same"),
    [
        (gelu_by_hand, "gelu"),
        (lambda x: x * torch.sigmoid(x), "silu"),
        (lambda x: torch.clamp(x, min=0), "relu"),
        (lambda x: F.leaky_relu(x, 0.3), "leaky_relu(0.3)"),
        (lambda x: torch.where(x > 0, x, 0.2 * x), "leaky_relu(0.2)"),
    ],
)
def test_a_function_written_out_has_the_moments_of_what_it_is(
    function: Function, same: str
) -> None:
    composites, index, flow = last(function)
    assert composites.source[index] == next(n.index for n in flow.nodes if n.op == "input")
    assert composites.is_function(index)
    for q in (0.5, 1.0, 4.0):
        found = composites.moments(index, q)
        assert found is not None
        assert found.second == pytest.approx(moments(same, q).second, rel=1e-9)


def test_it_is_computed_again_on_any_numbers() -> None:
    composites, index, _ = last(gelu_by_hand)
    x = torch.linspace(-3, 3, 50, dtype=torch.float64)
    assert torch.allclose(composites.function(index)(x), F.gelu(x), rtol=1e-12)


def test_names() -> None:
    for function, name in [
        (lambda x: F.leaky_relu(x, 0.3), "leaky_relu(0.3)"),
        (F.leaky_relu, "leaky_relu"),
        (torch.tanh, "tanh"),
        (lambda x: F.gelu(x, approximate="tanh"), "gelu_tanh"),
        (lambda x: x * torch.sigmoid(x), "sigmoid mul"),
    ]:
        composites, index, _ = last(function)  # type: ignore[arg-type]
        assert composites.name(index) == name


@pytest.mark.parametrize(
    "function", [lambda x: x + x.mean(), lambda x: x.softmax(-1), lambda x: x @ torch.eye(4)]
)
def test_what_mixes_elements_is_no_function(function: Function) -> None:
    composites, index, _ = last(function)
    assert not composites.is_function(index)


def test_casts_and_dropout_are_copies() -> None:
    composites, index, _ = last(lambda x: F.dropout(x.double(), 0.5).float())
    assert composites.source[index] != index
    assert composites.is_copy(index)
    assert not composites.is_function(index)


def test_linearity() -> None:
    composites, index, _ = last(torch.relu)
    # Of relu = x/2 + |x|/2 the straight part has (1/4) of the mean square, of 1/2 in all.
    assert composites.linearity(index) == pytest.approx(0.5, rel=1e-9)
    assert composites.linearity(index, odd=True) == pytest.approx(1.0, rel=1e-9)
    odd = composites.odd_moments(index, 1.0)
    assert odd is not None
    assert odd.second == pytest.approx(0.25, rel=1e-9)


def test_what_has_no_mean_square_has_no_moments() -> None:
    composites, index, _ = last(lambda x: torch.exp(x * x))
    assert composites.moments(index, 1.0) is None
    assert composites.linearity(index) == 0.0
