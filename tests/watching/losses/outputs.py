"""An output of a watched model, marked as the watch marks it."""

from __future__ import annotations

import torch
from torch import nn

from nethook.watching.losses.marks import Marks


def output(shape: tuple[int, ...] = (4, 3)) -> torch.Tensor:
    """What a linear layer returns."""
    out: torch.Tensor = nn.Linear(2, shape[-1])(torch.randn(*shape[:-1], 2))
    Marks().put(out.grad_fn, "G", ())
    return out
