"""The loss swings and does not fall.

Cause: steps at the edge of what is stable: too high a rate, too much momentum.
Evidence: the loss, without its trend, changes sign from step to step or swings widely, and
successive updates point in opposite directions.
Fix: a lower rate or less momentum, larger batches.
Silent: where the loss falls, for adversarial losses, and for noise without opposite updates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.progress import PROGRESS_READS, progress
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import UPDATE_COSINE


@dataclass(frozen=True)
class Thresholds:
    """What may be changed."""

    cosine: float = -0.3  # of successive updates, the median over parameters
    swing: float = 0.2  # spread of the loss around its trend, by its size


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    if went is None or went.improves or not went.finite:
        return
    cosines = [
        float(np.median(curve.value))
        for each in history.parameters
        if len(curve := history.curve(each.address, UPDATE_COSINE)) >= 5
    ]
    if not cosines:
        return
    cosine = float(np.median(cosines))
    swing = went.noise / max(abs(went.end), abs(went.start), 1e-12)
    if cosine <= limit.cosine and swing >= limit.swing * 0.25:
        yield Finding(
            "oscillating-loss",
            "warning",
            f"the loss swings by {swing:.0%} around {went.end:.3g} and does not fall; successive "
            f"updates undo each other (cosine {cosine:.2f}).",
            "Lower the learning rate by a factor of 3 to 10, or the momentum to 0.9.",
            first_step=0,
            last_step=history.steps - 1,
            evidence={
                "cosine of successive updates": Evidence(cosine, limit.cosine),
                "swing of the loss": Evidence(swing, limit.swing),
            },
        )


RULE = Rule(
    "oscillating-loss",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "series.@loop.forwards.mean",
        "series.update_cosine.mean",
    ),
    defaults=Thresholds(),
)
