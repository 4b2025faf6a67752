"""Mean squares of all values, as they will be once the plan is applied."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.init.dataflow.recorder import record
from nethook.init.dataflow.residuals import Structure
from nethook.init.plans.scales import Scales


class Net(nn.Module):
    def __init__(self, call: Any) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(self, x)


def scale_of_output(call: Any, first: float = 1.0, second: float = 1.0) -> float:
    """The mean square of the output, where the two layers are to give these."""
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
    structure = Structure(record(Net(call), nethook.inputs(x)))
    layers = [node.index for node in structure.nodes if node.op == "linear"]
    wanted = dict(zip(layers, (first, second), strict=False))
    return Scales(structure, wanted).of(structure.nodes[-1].index)


@pytest.mark.parametrize("square", [0.25, 1.0, 9.0])
def test_activations_by_their_moments(square: float) -> None:
    assert scale_of_output(lambda net, x: net.a(x).relu(), square) == pytest.approx(square / 2)
    tanh = scale_of_output(lambda net, x: torch.tanh(net.a(x)), square)
    assert tanh == pytest.approx(nethook.init.moments("tanh", square).second, rel=1e-4)


def test_norms_have_a_mean_square_of_one() -> None:
    assert scale_of_output(lambda net, x: net.norm(net.a(x)), 49.0) == 1.0


def test_sums_add_and_products_multiply() -> None:
    assert scale_of_output(lambda net, x: net.a(x) + net.b(x), 4.0, 9.0) == pytest.approx(13.0)
    assert scale_of_output(lambda net, x: net.a(x) * net.b(x), 4.0, 9.0) == pytest.approx(36.0)


def test_what_is_joined_is_weighted_by_its_size() -> None:
    joined = scale_of_output(
        lambda net, x: torch.cat([net.a(x), net.b(x)[:, :4]], dim=1), 4.0, 10.0
    )
    assert joined == pytest.approx((8 * 4 + 4 * 10) / 12)


def test_other_operations_keep_the_factor_that_was_measured() -> None:
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    net = Net(lambda net, x: net.a(x).cumsum(1))
    structure = Structure(record(net, nethook.inputs(x)))
    (layer,) = [node.index for node in structure.nodes if node.op == "linear"]
    with torch.no_grad():
        output = net.a(x)
        factor = float(output.cumsum(1).square().mean() / output.square().mean())
    scales = Scales(structure, {layer: 5.0})
    assert scales.of(structure.nodes[-1].index) == pytest.approx(5.0 * factor, rel=1e-5)


def test_a_thousand_operations_do_not_recurse() -> None:
    def call(net: Net, x: torch.Tensor) -> torch.Tensor:
        x = net.a(x)
        for _ in range(1200):
            x = x.flip(0)
        return x

    assert scale_of_output(call, 3.0) == pytest.approx(3.0)
