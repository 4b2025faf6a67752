"""What can run along the axis of curves besides steps: time, and epochs where they are known."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Integers
from nethook.figures.epochs import epochs_of
from nethook.figures.reading import Reading

_KNOTS: Final = 200  # between which steps are placed on a straight line


def axes_of(reading: Reading) -> dict[str, dict[str, Any]]:
    """Name -> knots: a `step` and what it is `at`; what lies between is on a straight line."""
    axes = {}
    for name, found in (("epoch", _epochs(reading)), ("time", _times(reading))):
        if found is not None:
            axes[name] = {"step": found[0].tolist(), "at": found[1].tolist()}
    return axes


def _times(reading: Reading) -> tuple[Integers, Floats] | None:
    """Seconds of each step since the first, from the times at which losses were recorded."""
    best: tuple[Integers, Floats] | None = None
    for scalar in reading.scalars.values():
        there = np.isfinite(scalar.time) & (scalar.time > 0)
        if there.sum() > 1 and (best is None or there.sum() > len(best[0])):
            best = (scalar.step[there], scalar.time[there])
    if best is None:
        return None
    step, time = best
    started = reading.run.info.get("started")
    begin = float(started) if isinstance(started, int | float) else float(time[0])
    begin = begin if 0 < begin <= time[0] else float(time[0])
    return _knots(step, np.maximum.accumulate(time - begin))


def _epochs(reading: Reading) -> tuple[Integers, Floats] | None:
    found = epochs_of(reading)
    return None if found is None else _knots(*found)


def _knots(step: Integers, at: Floats) -> tuple[Integers, Floats] | None:
    """At most so many of them, each step once; None where they say nothing."""
    step, first = np.unique(step, return_index=True)
    at = at[first]
    if len(step) < 2 or at[-1] <= at[0]:
        return None
    if len(step) > _KNOTS:
        kept = np.unique(np.linspace(0, len(step) - 1, _KNOTS).astype(int))
        step, at = step[kept], at[kept]
    return step, np.round(at, 6)
