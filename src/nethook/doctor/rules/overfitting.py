"""Training falls, evaluation rises.

Cause: too few examples for so many weights, or too many epochs.
Evidence: the loss of evaluations rises from its best over several passes while the training loss
goes on falling.
Fix: stop at the best evaluation; more data, augmentation, decay, dropout.
Silent: for noise in the evaluation, for fewer than five passes, and for a gap that does not grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    rise: float = 0.1  # from the best evaluation, by its value
    passes: float = 5


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    train = progress(history)
    curves = [curve for curve in history.losses("eval") if len(curve) >= limit.passes]
    if train is None or not curves or not train.improves:
        return
    curve = max(curves, key=len)
    value = curve.value
    smooth = np.convolve(np.pad(value, 1, mode="edge"), np.ones(3) / 3, mode="valid")
    best = int(np.argmin(smooth))
    after = smooth[best:]
    if len(after) < 3 or smooth[best] <= 0:
        return
    rise = float(smooth[-1] / smooth[best] - 1)
    noise = median(np.abs(np.diff(value))) / max(float(smooth[best]), 1e-12)
    upward = float((np.diff(after) > 0).mean())
    if rise < max(limit.rise, 1.5 * noise) or upward < 0.6:
        return
    yield Finding(
        "overfitting",
        "warning",
        f"the evaluation loss was best at step {int(curve.step[best])} ({number(smooth[best])}) "
        f"and has risen by {rise:.0%} since, while the training loss fell to {number(train.end)}.",
        "Keep the weights of the best evaluation (early stopping); more data, augmentation, weight "
        "decay or dropout.",
        first_step=int(curve.step[best]),
        last_step=int(curve.step[-1]),
        evidence={
            "rise of the evaluation loss": Evidence(rise, limit.rise),
            "evaluations": Evidence(len(curve), limit.passes),
        },
    )


RULE = Rule(
    "overfitting",
    Cause.SYMPTOM,
    look,
    reads=(
        *PROGRESS_READS,
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
