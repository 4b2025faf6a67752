"""Initialisation and checkup go on with empty, complex, sparse and expanded tensors."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import nethook
from nethook.init.dataflow.recorder import mean_square
from nethook.init.proof.measure import mean_cosine
from tests.zoo.odd_tensors import ODD, Takes

HUGE = 2**40


class Empty(nn.Module):
    """Layers and parameters without elements, of no dimension, and of complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.none, self.after = nn.Linear(4, 3), nn.Linear(4, 0), nn.Linear(0, 3)
        self.rows = nn.Parameter(torch.zeros(0, 5))
        self.number = nn.Parameter(torch.tensor(2.0))
        self.phase = nn.Parameter(torch.randn(3, 3, dtype=torch.complex64))

    def forward(self, x):
        more = self.rows.sum() + self.number + self.phase.abs().mean()
        return self.fc(x).relu() + self.after(self.none(x)) + more


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_layers_without_elements_are_left_alone():
    model, x = Empty(), torch.randn(16, 4)
    rows = {row.parameter: row for row in nethook.init.plan(model, x).rows}
    assert "it has no elements" in rows["none.weight"].reason
    assert "it has no elements" in rows["after.weight"].reason
    assert rows["fc.weight"].std is not None
    assert [row.address for row in nethook.init.verify(model, x).rows] == ["fc/linear#0"]
    found = nethook.checkup(model, (x, torch.randn(16, 3)), nn.MSELoss())
    assert "symmetric-init" not in [each.code for each in found.findings]


KINDS = ["coo", "nested", "quantised", "uint4", "expanded", "no rows", "complex"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_check_up_takes_any_input(kind):
    given = nethook.inputs(ODD[kind], torch.randn(8, 4))
    found = nethook.checkup(Takes(), (given, torch.randn(8, 3)), nn.MSELoss(), steps=12)
    assert found.checks


def test_scales_of_expanded_signals_are_those_of_their_memory():
    x = torch.randn(6, 1)
    huge = x.expand(6, HUGE)
    assert mean_square(huge) == pytest.approx(float(x.double().square().mean()))
    sign = torch.tensor([[1.0], [1.0], [-1.0]]).expand(3, HUGE)
    assert mean_cosine(sign, 3) == pytest.approx(-1 / 3)
    assert math.isnan(mean_cosine(torch.randn(4, 4).to_sparse(), 4))


def test_scales_of_overlapping_windows_are_those_of_what_they_show():
    windows = torch.randn(50).unfold(0, 20, 1)
    wanted = float(windows.contiguous().double().square().mean())
    assert mean_square(windows) == pytest.approx(wanted)
    batched = torch.randn(3, 50).unfold(1, 20, 1)
    wanted = float(batched.contiguous().double().square().mean())
    assert mean_square(batched) == pytest.approx(wanted)
    assert math.isfinite(
        mean_square(torch.randn(10**5).unfold(0, 10**4, 1)[None].expand(2**20, -1, -1))
    )
