"""Units that no sample of a batch makes active."""

from __future__ import annotations

import torch
from torch import nn

from nethook.examining.checkup.batch import Batch, as_batch
from nethook.examining.checkup.dead_units import FEWEST, dead_units


def batch(*shape: int) -> Batch:
    return as_batch(torch.randn(*shape, generator=torch.Generator().manual_seed(0)), None)


def with_dead(layer: nn.Module, count: int) -> nn.Module:
    """The first units get a bias that no input outweighs."""
    with torch.no_grad():
        layer.bias[:count] = -1e6
    return layer


def test_units_of_a_rectifier_module() -> None:
    model = nn.Sequential(with_dead(nn.Linear(4, 10), 3), nn.ReLU(), nn.Linear(10, 2))
    assert dead_units(model, batch(64, 4)) == {"1": (3, 10)}


def test_channels_of_a_convolution() -> None:
    model = nn.Sequential(with_dead(nn.Conv2d(3, 6, 3), 2), nn.ReLU())
    assert dead_units(model, batch(16, 3, 8, 8)) == {"1": (2, 6)}


def test_the_function_counts_like_the_module_and_only_once() -> None:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.act = with_dead(nn.Linear(4, 10), 4), nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.act(torch.relu(self.fc(x)))

    counts = dead_units(Functional(), batch(64, 4))
    assert counts["act"] == (4, 10)
    assert [value for name, value in counts.items() if name != "act"] == [(4, 10)]


def test_activations_that_are_not_rectifiers() -> None:
    model = nn.Sequential(with_dead(nn.Linear(4, 10), 3), nn.Tanh())
    assert dead_units(model, batch(64, 4)) == {}


def test_too_few_samples_say_nothing() -> None:
    model = nn.Sequential(nn.Linear(4, 10), nn.ReLU())
    assert dead_units(model, batch(FEWEST - 1, 4)) == {}
    assert set(dead_units(model, batch(FEWEST, 4))) == {"1"}
