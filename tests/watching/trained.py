"""A small training, watched or not, and what it ends with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import nethook
from nethook.errors import NoSuchRunError
from nethook.runs.reading.run import Run
from nethook.watching.watch import Watch

STEPS = 24


def weights_after(
    to: Path | None = None, at_step: Callable[[int, Watch], None] | None = None
) -> tuple[torch.Tensor, list[str]]:
    """Trains a small network; its weights afterwards, and the warnings that were given."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        watch = None if to is None else nethook.watch(model, optimizer, to=to, budget=None)
        for step in range(STEPS):
            loss = model(torch.randn(16, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if at_step is not None:
                at_step(step, watch)
        if watch is not None:
            watch.close()
    return torch.cat([each.detach().flatten() for each in model.parameters()]), [
        str(each.message) for each in said
    ]


def opened(path: Path) -> Run | None:
    """The run with everything read that it has; None where nothing at all could be written."""
    try:
        run = nethook.open_run(path)
    except NoSuchRunError:
        return None
    for info in run.catalogue:
        run.series(info.address, info.quantity)
    assert run.info
    return run
