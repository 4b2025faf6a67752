"""How much of a run was measured: the share of steps that the budget of watching left."""

from __future__ import annotations

from typing import Final

import numpy as np

from nethook.figures.reading import Reading
from nethook.runs import names
from nethook.runs.results import Series
from nethook.views.plain import Line
from nethook.views.thin import thin_line

SOURCES: Final = {
    "gradients": names.PARAM_GRADS,
    "output_gradients": names.GRADS,
    "updates": names.UPDATES,
    "weights": names.PARAMS,
}
"""The series that a quantity is made of; of all others it is the outputs."""
_SAMPLED: Final = 8  # series that stand for all
WHOLE: Final = 0.995
"""From here on everything counts as measured."""


def coverage(reading: Reading) -> float | None:
    """The share of steps at which layers were measured; None where there are none."""
    return share_of(sampled(reading, "spread"))


def coverage_line(reading: Reading, quantity: str, points: int = 400) -> Line | None:
    """The share over steps for what a quantity is made of; None where all was measured."""
    series = sampled(reading, quantity)
    share = share_of(series)
    if share is None or share >= WHOLE:
        return None
    seen = np.mean([each.coverage for each in series], axis=0)
    return thin_line(Line("measured", series[0].last_step, seen), points)


def share_of(series: list[Series]) -> float | None:
    """The share of steps at which these were measured."""
    steps = sum(int(each.steps.sum()) for each in series)
    return sum(int(each.seen.sum()) for each in series) / steps if steps else None


def sampled(reading: Reading, quantity: str) -> list[Series]:
    """A few series of those that a quantity is made of, near each other in the file."""
    wanted = SOURCES.get(quantity, names.OUTPUTS)
    keys = [key for key in reading.catalogue if key[1] == wanted]
    return reading.series(keys[:_SAMPLED])
