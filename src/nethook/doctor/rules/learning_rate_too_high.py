"""Steps are too large.

Cause: a learning rate that throws the weights about instead of moving them.
Evidence: the true update by the weights, while the loss ends above its start, or does not fall, or
is no longer finite; or leaps up in the first steps and does not do its job afterwards.
Fix: a lower rate; warm-up.
Silent: where the loss falls, however large the steps are, and where gradients explode with updates
of a usual size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median, quantile
from nethook.runs.names import UPDATE_RATIO
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    ratio: float = 0.03  # update by weights, where the loss diverges
    stuck: float = 0.1  # and where it merely does not fall
    steps: float = 20  # before which a loss that is finite does not diverge
    first: float = 0.5  # in the first steps, where it does not fall: the start is overwritten
    thrown: float = 1.0  # in the first steps, where the loss leaps up and falls only in part


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    ratio = history.loop(UPDATE_RATIO)
    went = progress(history)
    finite = ratio.where(np.isfinite(ratio.value))
    if went is None or not len(finite):
        return
    # A run that is not finite after two steps has no more of them.
    if len(finite) < 5 and (went.finite or finite.value.max() < limit.first):
        return
    early = finite.value[:10]
    usual, peak = median(finite.value), quantile(early, 0.9)
    beginning = float(early.max())
    # In a few steps batches that are sorted look like a loss that rises.
    enough = history.steps >= limit.steps or not went.finite
    worse = enough and went.diverges and max(usual, peak) > limit.ratio
    stuck = not went.improves and usual > limit.stuck
    # A step larger than the weights, after which the loss is a multiple of what it was.
    thrown = beginning > limit.thrown and went.early > 3 * abs(went.start)
    overwritten = (not went.improves and beginning > limit.first) or (
        not went.does_its_job and thrown
    )
    if not (worse or stuck or overwritten):
        return
    large = max(usual, peak) if worse else usual if stuck else beginning
    threshold = limit.ratio if worse else limit.stuck if stuck else limit.first
    over = finite.where(finite.value > threshold)
    first = int(over.step[0]) if len(over) else 0
    rate = history.largest_rate()
    ends = f"ends at {went.end:.3g}" if went.finite else "is not finite at the end"
    changed = f"{large:.1%} of their size" if large < 10 else f"{large:.1g} times their size"
    yield Finding(
        "learning-rate-too-high",
        "error",
        f"a step changes the weights by {changed} (0.1 % is usual); the loss began at "
        f"{went.start:.3g} and {ends}. The learning rate is {number(rate)}.",
        f"Lower the learning rate, to about {number(rate * 0.003 / large)}, or warm it up over the "
        "first steps.",
        first_step=first,
        last_step=int(finite.step[-1]),
        evidence={"update by weights": Evidence(large, threshold)},
    )


RULE = Rule(
    "learning-rate-too-high",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "scalar.lr",
        "series.@loop.forwards.mean",
        "series.@loop.update_ratio.mean",
    ),
    defaults=Thresholds(),
)
