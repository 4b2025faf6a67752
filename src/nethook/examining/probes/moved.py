"""What has moved between two runs, and by how much."""

from __future__ import annotations

from typing import Final

import torch

NOISE: Final = 1e-5
"""A change below this share of the largest value is rounding, and no change."""


def change(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """How far every element has moved, as a share of the largest value; 0 for rounding."""
    one, other = before.detach().double(), after.detach().double()
    largest = torch.nan_to_num(one, 0.0, 0.0, 0.0).abs().amax().clamp_min(1e-30)
    moved = (other - one).abs() / largest
    # What is masked with minus infinity has not moved; what became infinite has.
    moved = torch.where((one == other) | (one.isnan() & other.isnan()), 0.0, moved)
    moved = torch.nan_to_num(moved, 1.0, 1.0, 1.0)
    return torch.where(moved > NOISE, moved, 0.0)


def comparable(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether two tensors can be compared element by element."""
    return (
        before.shape == after.shape
        and before.numel() > 0
        and before.is_floating_point()
        and after.is_floating_point()
        and before.layout is torch.strided
        and after.layout is torch.strided
    )
