"""Letting a tensor inside a graph keep its gradient."""

from __future__ import annotations

import torch

from nethook.hooks.modes import quiet


def keep_gradient(tensor: torch.Tensor) -> None:
    """Lets `tensor.grad` be set by a backward pass, as that of a leaf is."""
    with quiet():
        tensor.grad_fn  # noqa: B018  as in `register_on_tensor`: some views would crash torch
        tensor.retain_grad()
