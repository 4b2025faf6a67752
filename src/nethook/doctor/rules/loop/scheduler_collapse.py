"""The learning rate is driven to nearly nothing far too early.

Cause: a scheduler that counts epochs is stepped every batch, or its schedule is much shorter than
the run.
Evidence: the rate fell below a thousandth of its peak before half of the run was over, stayed
there, and the loss hardly fell afterwards. A hundredth is enough where little was learnt at all: a
scheduler that watches a score as if it were a loss cuts the rate at every gain. Or every rate is
exactly zero from some step on, for a third of the run or more: a factor of 0.
Fix: step the scheduler once an epoch, or give it the number of batches.
Silent: for schedules that end near the end of the run (linear decay, cosine, one cycle), for
warm-up and restarts, and where the loss was at its floor already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Curve, History
from nethook.doctor.phrases import scheduler_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress, progress_of
from nethook.runs.names import SCHEDULES
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    fall: float = 1e-3  # of the peak
    little: float = 1.1e-2  # the same, in a run that does not do its job
    part: float = 0.5  # of the run that must be left when it is reached
    nothing: float = 0.3  # the same, where the rates are exactly zero


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding: the rate that collapsed first."""
    if not history.loop(SCHEDULES).total:
        return
    if (zero := _zero(history, limit.nothing)) is not None:
        yield zero
        return
    went = progress(history)
    is_ill = went is not None and not went.does_its_job
    fall = limit.little if is_ill else limit.fall
    fell = [
        (step, peak, last, name)
        for name, curve in history.rates().items()
        if (collapse := _collapse(curve, history.steps, fall, limit.part)) is not None
        for step, peak, last in [collapse]
    ]
    if not fell:
        return
    step, peak, last, name = min(fell)
    if any(_was_done(curve, step) for curve in history.losses()):
        return
    left = 1 - step / max(1, history.steps)
    yield Finding(
        "scheduler-collapse",
        "warning",
        f"the learning rate fell from {number(peak)} to {number(last)}: to a "
        f"{'hundredth' if is_ill else 'thousandth'} of its peak or less by step {step}, with "
        f"{left:.0%} of the run still to come.",
        "Call scheduler.step() once an epoch instead of once a batch, or give the scheduler the "
        'number of batches as its length; ReduceLROnPlateau needs mode="max" for a score.',
        first_step=step,
        last_step=history.steps - 1,
        evidence={
            "rate by its peak": Evidence(last / peak, fall),
            "part of the run that was left": Evidence(left, limit.part),
        },
        lines=scheduler_lines(history, name.partition(".")[0]),
    )


def _zero(history: History, part: float) -> Finding | None:
    """Every rate is exactly zero at the end: no step changes anything any more."""
    rates = history.rates()
    since = [_zero_since(curve) for curve in rates.values() if float(np.max(curve.value)) > 0]
    if not since or None in since:
        return None
    step = max(one for one in since if one is not None)
    left = 1 - step / max(1, history.steps)
    if left < part:
        return None
    peak = max(float(curve.value.max()) for curve in rates.values())
    return Finding(
        "scheduler-collapse",
        "warning",
        f"the learning rate is exactly 0 since step {step} ({number(peak)} before): the last "
        f"{left:.0%} of the run changed nothing.",
        "Look at the factor of the scheduler: gamma=1 leaves the rate as it is, gamma=0 ends the "
        "training; or give the scheduler the length of the run.",
        first_step=step,
        last_step=history.steps - 1,
        evidence={"part of the run without a rate": Evidence(left, part)},
        lines=scheduler_lines(history, next(iter(rates)).partition(".")[0]),
    )


def _zero_since(curve: Curve) -> int | None:
    """The step from which on a rate is zero, to the end; None where it is not."""
    above = np.flatnonzero(curve.value != 0)
    if not len(above) or above[-1] + 1 >= len(curve):
        return None
    return int(curve.step[above[-1] + 1])


def _collapse(
    curve: Curve, steps: int, fall: float, part: float
) -> tuple[int, float, float] | None:
    """When a rate fell below its limit for good, its peak, and its last value."""
    if len(curve) < 3:
        return None
    peak = float(curve.value.max())
    high = np.flatnonzero(curve.value > fall * peak)
    if peak <= 0 or high[-1] + 1 >= len(curve):
        return None
    step = int(curve.step[high[-1] + 1])
    if step > (1 - part) * steps:
        return None
    return step, peak, float(curve.value[-1])


def _was_done(loss: Curve, step: int) -> bool:
    """Whether a loss had fallen by most of what it could before a step."""
    before = progress_of(loss.until(step))
    return before is not None and before.does_its_job and before.fell > 0.9


RULE = Rule(
    "scheduler-collapse",
    Cause.LOOP,
    look,
    reads=(
        *PROGRESS_READS,
        "event.groups",
        "scalar.lr",
        "series.@loop.forwards.mean",
        "series.@loop.schedules.mean",
    ),
    defaults=Thresholds(),
)
