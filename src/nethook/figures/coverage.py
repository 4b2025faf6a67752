"""How much of a run was measured: the share of steps that the budget of watching left."""

from __future__ import annotations

from typing import Final

import numpy as np

from nethook.drawing.data import Line
from nethook.figures.reading import Reading
from nethook.runs import names
from nethook.runs.reading.results import Series

SOURCES: Final = {
    "gradients": names.PARAM_GRADS,
    "output_gradients": names.GRADS,
    "updates": names.UPDATES,
    "weights": names.PARAMS,
}
"""The series that a quantity is made of; of all others it is the outputs."""
_SHORT: Final = 2000  # steps up to which a series is read as a whole
_SAMPLED: Final = 12  # places of a longer one that are read
_WIDE: Final = 16  # windows at each
WHOLE: Final = 0.995
"""From here on everything counts as measured."""


def coverage(reading: Reading, quantity: str = "spread") -> float | None:
    """The share of steps at which what a quantity is made of was measured; None without steps."""
    samples = sampled(reading, quantity)
    steps = sum(int(series.steps.sum()) for series in samples)
    return sum(int(series.seen.sum()) for series in samples) / steps if steps else None


def coverage_line(reading: Reading, quantity: str) -> Line | None:
    """The same over steps; None where all was measured."""
    share = coverage(reading, quantity)
    if share is None or share >= WHOLE:
        return None
    samples = sampled(reading, quantity)
    last = np.concatenate([series.last_step for series in samples])
    return Line("measured", last, np.concatenate([series.coverage for series in samples]))


def sampled(reading: Reading, quantity: str) -> list[Series]:
    """A series of those that a quantity is made of: whole where it is short, else in parts.

    A part is all windows around one of many steps, so that little of a long run is read.
    """
    wanted = SOURCES.get(quantity, names.OUTPUTS)
    keys = [key for key in reading.catalogue if key[1] == wanted]
    # The model's own outputs stand for no layer; all layers take turns alike.
    chosen = next((key for key in keys if key[0]), None) or (keys[0] if keys else None)
    if chosen is None:
        return []
    last = reading.last_step
    if last < _SHORT:
        return reading.series([chosen])
    kept = reading.samples
    if wanted not in kept:
        ends = np.linspace(0, last, _SAMPLED + 1).astype(int)
        spans = [(int(end), int(end) + _WIDE * (1 + int(end) // 1000)) for end in ends]
        kept[wanted] = [reading.run.many([chosen], between=span)[0] for span in spans]
    return [series for series in kept[wanted] if len(series)]
