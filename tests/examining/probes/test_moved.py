"""What has moved between two runs."""

from __future__ import annotations

import math

import torch

from nethook.examining.probes.moved import change, comparable


def test_rounding_is_no_change() -> None:
    before = torch.tensor([100.0, 1.0, 0.0])
    assert change(before, before + 1e-4).tolist() == [0, 0, 0]
    moved = change(before, torch.tensor([100.0, 3.0, 0.0]))
    assert torch.allclose(moved, torch.tensor([0.0, 0.02, 0.0], dtype=torch.float64))


def test_masks_have_not_moved() -> None:
    before = torch.tensor([-math.inf, math.nan, 1.0])
    assert change(before, before.clone()).tolist() == [0, 0, 0]
    assert change(before, torch.tensor([0.0, math.nan, math.nan])).tolist() == [1, 0, 1]


def test_what_can_be_compared() -> None:
    x = torch.zeros(3)
    assert comparable(x, x)
    assert not comparable(x, torch.zeros(4))
    assert not comparable(x.long(), x.long())
    assert not comparable(torch.zeros(0), torch.zeros(0))
    assert not comparable(x.to_sparse(), x.to_sparse())
