"""Which dimension counts the units, and where an activation ends."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.errors import OptionError
from nethook.kinds import bounds, unit_dim
from nethook.stats.rows import Rows


@pytest.mark.parametrize(
    ("module", "shape", "units"),
    [
        (nn.Linear(5, 7), (2, 5), 7),
        (nn.Linear(5, 7), (2, 3, 5), 7),
        (nn.Linear(5, 7), (5,), 7),
        (nn.Conv1d(2, 7, 3), (4, 2, 9), 7),
        (nn.Conv1d(2, 7, 3), (2, 9), 7),
        (nn.Conv2d(2, 7, 3), (4, 2, 9, 9), 7),
        (nn.Conv2d(2, 7, 3), (2, 9, 9), 7),
        (nn.ConvTranspose2d(2, 7, 3), (4, 2, 9, 9), 7),
        (nn.Conv3d(2, 7, 3), (4, 2, 9, 9, 9), 7),
        (nn.BatchNorm1d(7), (4, 7), 7),
        (nn.BatchNorm1d(7), (4, 7, 3), 7),
        (nn.BatchNorm2d(7), (4, 7, 3, 3), 7),
        (nn.GroupNorm(1, 7), (4, 7, 3), 7),
        (nn.InstanceNorm2d(7), (4, 7, 3, 3), 7),
        (nn.LayerNorm(7), (4, 3, 7), 7),
        (nn.MaxPool2d(2), (4, 7, 6, 6), 7),
        (nn.Embedding(9, 7), None, 7),
        (nn.ReLU(), (4, 7), 7),
        (nn.ReLU(), (4, 3, 7), 7),
        (nn.ReLU(), (4, 7, 3, 3), 7),
        (nn.Sigmoid(), (4, 7, 3, 3, 3), 7),
    ],
    ids=str,
)
def test_the_unit_dimension_of_a_module(module, shape, units):
    x = torch.zeros(2, 3, dtype=torch.long) if shape is None else torch.randn(shape)
    out = module(x)
    dim = unit_dim(module, out.dim())
    assert dim is not None
    assert out.shape[dim] == units


def test_where_there_is_none():
    assert unit_dim(nn.Linear(1, 1), 0) is None
    assert unit_dim(nn.Conv3d(1, 1, 1), 3) is None
    assert unit_dim(nn.BatchNorm1d(3), 1) is None


def test_bounds():
    assert bounds(nn.Sigmoid()) == (0.0, 1.0)
    assert bounds(nn.Tanh()) == (-1.0, 1.0)
    assert bounds(nn.Hardtanh(-2, 3)) == (-2.0, 3.0)
    assert bounds(nn.ReLU()) is None
    assert bounds(nn.ReLU6()) is None


def test_a_dead_unit_is_silent_over_a_whole_window():
    rows = Rows(1)
    slot = rows.slot(0, unit_dim=1)
    slot.fold(torch.tensor([[0.0, 1.0, 0.0]]))
    slot.fold(torch.tensor([[2.0, 0.0, 0.0]]))
    rows.collect()
    assert slot.bits is not None
    assert slot.bits.tolist() == [1, 1, 0]
    rows.clear()
    assert slot.bits.tolist() == [0, 0, 0]


def test_a_saturated_unit_is_near_an_end():
    rows = Rows(1)
    slot = rows.slot(0, bounds=bounds(nn.Tanh()))
    slot.fold(torch.tensor([-1.0, -0.95, -0.94, -0.93, 0.0, 0.95, 1.0]))
    rows.collect()
    assert rows.matrix[0, 12:15].tolist() == [3 - 1, 2, 7]  # within 3 % of a range of 2: 0.06


def test_rows_refuse_what_cannot_be():
    with pytest.raises(OptionError, match="There is no row 3: there are 3"):
        Rows(3).slot(3)
    with pytest.raises(OptionError, match="`limit` must be at least 1"):
        Rows(3, limit=0)
