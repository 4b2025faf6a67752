"""The structure of a model, from shapes alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import nethook
from nethook.init.calibration.from_shapes import Stream, learn_structure, structure_of
from nethook.init.dataflow.recorder import Node, record


class Residual(nn.Module):
    """Two branches on a stream that begins with `stem`."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = x + self.a(x.relu())
        return x + self.b(x.relu())


def test_shapes_say_what_a_forward_says() -> None:
    model, given = Residual(), nethook.inputs(torch.randn(16, 6))
    shapes, data = learn_structure(model, given), structure_of(model, record(model, given))
    assert shapes is not None
    for one, two in zip(shapes.plan.rows, data.plan.rows, strict=True):
        assert (one.parameter, one.role, one.residual, one.feeds) == (
            two.parameter, two.role, two.residual, two.feeds,
        )  # fmt: skip
    assert shapes.streams == data.streams
    assert set(shapes.streams) == {"a.weight", "b.weight"}
    assert shapes.streams["a.weight"].share == pytest.approx(1 / 2)


def test_no_memory_and_no_values_are_touched() -> None:
    model = Residual()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    learn_structure(model, nethook.inputs(torch.randn(16, 6)))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_forward_that_looks_at_values() -> None:
    class Looks(Residual):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x if float(x.sum()) > 0 else -x)

    assert learn_structure(Looks(), nethook.inputs(torch.randn(16, 6))) is None


def node(index: int, address: str, square: float) -> Node:
    return Node(index, "linear", address, mean_square=square)


def test_a_stream_is_found_again_in_another_forward() -> None:
    nodes = [node(0, "a", 1.0), node(1, "stem", 4.0), node(2, "stem", 9.0)]
    assert Stream("linear", "stem", 0, 0, 0.5).square(nodes) == 2.0
    assert Stream("linear", "stem", 0, 1, 0.5).square(nodes) == 4.5  # its second call
    assert Stream("linear", "stem", 0, 2, 0.5).square(nodes) is None  # not there yet
    assert Stream("linear", "stem", 1, 0, 0.5).square(nodes) is None  # another result of it


@pytest.mark.parametrize("square", [0.0, math.nan, math.inf])
def test_a_stream_without_a_scale(square: float) -> None:
    assert Stream("linear", "stem", 0, 0, 0.5).square([node(0, "stem", square)]) is None
