"""The formulae of the Grad-CAM family, on values and gradients (rows, channels, height, width)."""

from __future__ import annotations

import torch


def grad_cam_map(values: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    """Channels weighted with their mean gradient (Selvaraju et al. 2017)."""
    weights = torch.mean(grads, dim=(2, 3), keepdim=True)
    return torch.sum(weights * values, dim=1)


def plus_plus_map(values: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    """Positive gradients, weighted by their own share in a channel (Chattopadhay et al. 2018).

    The higher derivatives are those of an exponential of the score, as in the paper.
    """
    square = grads.square()
    below = 2 * square + values.sum((2, 3), keepdim=True) * square * grads
    share = torch.where(below != 0, square / torch.where(below != 0, below, 1.0), 0.0)
    weights = (share * grads.relu()).sum((2, 3), keepdim=True)
    return (weights * values).sum(1)


def hires_map(values: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    """Each value times its own gradient (Draelos and Carin 2020)."""
    return (grads * values).sum(1)


def layer_map(values: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    """Each value times its own positive gradient (Jiang et al. 2021)."""
    return (grads.relu() * values).sum(1)


def masks_of(values: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Each channel as a mask of the picture's size, from 0 to 1; a flat one is 0 everywhere."""
    large = torch.nn.functional.interpolate(values, size, mode="bilinear", align_corners=False)
    low, high = large.amin((2, 3), keepdim=True), large.amax((2, 3), keepdim=True)
    return (large - low) / torch.where(high > low, high - low, torch.ones_like(high))
