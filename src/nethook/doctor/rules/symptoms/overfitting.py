"""Training falls, evaluation rises.

Cause: too few examples for so many weights, or too many epochs.
Evidence: the loss of evaluations rises from its best over several passes while the training loss
goes on falling.
Fix: stop at the best evaluation; more data, augmentation, decay, dropout.
Silent: for noise in the evaluation, for fewer than five passes, for a gap that does not grow, and
where another loss of the evaluations is at its best at the end: one that rises beside it is a part
(the distance to a codebook that moves). A note where one batch is all the data there is: a toy,
whose weights are to fit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Floats, History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import REPEATED
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
    lasting = float(np.mean(value[-3:]) / smooth[best] - 1)
    # Noise is what single evaluations are away from a line through their neighbours: 1.22 times
    # the spread of each. Over the whole by the median, which the first fall does not move, and in
    # what rises by all of it.
    apart = value[1:-1] - 0.5 * (value[:-2] + value[2:])
    usual, since = 1.48 * median(np.abs(apart)), apart[max(0, best - 1) :]
    spread = max(usual, float(np.sqrt(np.mean(since**2))) if len(since) else 0.0) / 1.22
    noise = spread / max(float(smooth[best]), 1e-12)
    if rise < limit.rise or lasting < 3.5 * noise or _upward(value[best:]) < 0.5:
        return
    if any(_still_falls(other.value) for other in curves if other is not curve):
        return
    repeated = history.batch(REPEATED)
    alone = len(repeated) > 0 and repeated.total > 0.9 * int(repeated.steps.sum())
    yield Finding(
        "overfitting",
        "info" if alone else "warning",
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


def _still_falls(values: Floats) -> bool:
    """Whether a loss of evaluations is at its best at the end."""
    smooth = np.convolve(np.pad(values, 1, mode="edge"), np.ones(3) / 3, mode="valid")
    return bool(smooth[-1] <= 1.02 * smooth.min()) and bool(smooth[-1] < 0.9 * smooth[0])


def _upward(values: Floats) -> float:
    """How much more often a later value is above an earlier one than below: between -1 and 1."""
    signs = np.sign(values[None, :] - values[:, None])[np.triu_indices(len(values), 1)]
    return float(signs.mean()) if len(signs) else 0.0


RULE = Rule(
    "overfitting",
    Cause.SYMPTOM,
    look,
    reads=(
        *PROGRESS_READS,
        "series.@batch.repeated.mean",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
