"""A small training run in a file, ill or well."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import nethook


def train(path: Path, *, steps: int = 40, wipe: bool = False, seed: int = 0) -> Path:
    """Trains a small classifier; with `wipe`, gradients are cleared before each step."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(256, 8), torch.randint(3, (256,))
    x[:, 0] += 3 * y
    with nethook.watch(model, optimizer, to=path, budget=None):
        for step in range(steps):
            rows = slice(32 * (step % 8), 32 * (step % 8) + 32)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            if wipe:
                optimizer.zero_grad()
            optimizer.step()
    return path
