"""Saved studies, as they lie beside a run."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from nethook import edits, interp


def saved(folder: Path) -> Path:
    """A folder with a sweep and an attribution of pictures."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 2))
    images = torch.rand(2, 1, 8, 8)
    swept = interp.sweep(
        model,
        images,
        at=["0", "1"],
        over="units",
        change=edits.zero(),
        metric=lambda out: out[:, 0],
    )
    swept.named(["left", "<b>middle</b>", "right"]).save(folder / "units.json")
    interp.saliency(model, images, target=1).save(folder / "pixels.json")
    return folder
