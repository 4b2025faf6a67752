"""Trains a case under `nethook.watch`, and reads what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nethook
from nethook.watching.watch import watch
from tests.watching.flight_cases import Case


def train(case: Case) -> None:
    """A plain training loop."""
    optimizer = case.optimizer(case.model.parameters())
    for x, y in case.batches:
        optimizer.zero_grad()
        loss = case.loss(case.model(*(x if isinstance(x, tuple) else (x,))), y)
        if case.scaler is None:
            loss.backward()
            optimizer.step()
        else:
            case.scaler.scale(loss).backward()
            case.scaler.step(optimizer)
            case.scaler.update()


def watched(case: Case, path: Path, **options: Any) -> list[Any]:
    """Trains under a watch; the events of NaN, and of anything that failed."""
    with watch(case.model, to=path, **options):
        train(case)
    with nethook.open_run(path) as run:
        return [event for event in run.events if event.kind in {"non-finite", "watch-failed"}]
