"""“Have two networks learnt the same?” CKA of every pair of layers; and what a unit sees."""

from __future__ import annotations

import torch
from torch import nn

from nethook import interp


def network(seed: int) -> nn.Sequential:
    """A small convolutional network."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 2),
    )  # fmt: skip


one, two = network(0), network(1)
images = torch.randn(64, 1, 16, 16)
alike = interp.cka(one, two, images, at=["0", "3", "6"], pool="flatten")
print(alike)
figure = alike.figure()
own = interp.cka(one, None, images, at=["0", "3", "6"], pool="flatten").values.diagonal()
print("a layer with itself:", [round(float(value), 3) for value in own])

field = interp.receptive_field(one, images[:8], at="3")
print(f"a place of the second convolution reads {field.size}, 3 + 1 + 2 · 2 along each axis")
print("half of its gradient lies within", field.effective_size(0.5))
figure = field.figure()
