"""Small trainings, watched as `nethook run` watches them, and what the doctor says of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import nethook
from nethook.doctor.finding import Finding
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.process.origins import note_origins

STEPS = 24


class Net(nn.Module):
    """Two layers; some test puts more between them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 6)
        self.last = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.first(x)))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(16, 4)
    return x, x[:, :3].argmax(1)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, after: Callable[[], Any]) -> None:
    """The usual loop."""
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        after()


def findings(
    folder: Path,
    model: nn.Module | dict[str, nn.Module],
    loop: Callable[..., None],
    optimizer: torch.optim.Optimizer | None = None,
    *,
    before: Callable[[], Any] = lambda: None,
    after: Callable[[], Any] = lambda: None,
) -> list[Finding]:
    """Watches `loop(model, optimizer, after)` and diagnoses it; `before` runs before the watch."""
    folder.mkdir(exist_ok=True)
    with Attachment(Owner("test")) as hooks:
        note_origins(hooks)
        before()
        if optimizer is None:
            parts = model.values() if isinstance(model, dict) else [model]
            optimizer = torch.optim.Adam([p for part in parts for p in part.parameters()], 0.01)
        with nethook.watch(model, to=folder / "run.db", budget=None) as watch:
            watch.be_silent()
            loop(model, optimizer, after)
    return nethook.diagnose(folder / "run.db")


def codes(*args: Any, **kwargs: Any) -> list[str]:
    """The codes of what was found at `warning` or above."""
    return [each.code for each in findings(*args, **kwargs) if each.at_least("warning")] or [""]
