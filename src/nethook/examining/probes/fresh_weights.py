"""A copy with weights as a fresh network has them: what a trained or odd start hides is seen."""

from __future__ import annotations

import torch
from torch import nn


def draw_weights(model: nn.Module) -> None:
    """Weights as of a fresh network: none of them zero, and of a size that keeps a signal."""
    source = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point() and weight.layout is torch.strided:
                size = (2 / max(1, weight.shape[1:].numel())) ** 0.5 if weight.dim() > 1 else 0.1
                drawn = torch.randn(weight.shape, generator=source, device="cpu")
                weight.copy_(size * drawn)
