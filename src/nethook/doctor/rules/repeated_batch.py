"""The same batch is used in every step.

Cause: `next(iter(loader))` without shuffling inside the loop.
Evidence: the fingerprint of the inputs, equal from step to step.
Fix: iterate over the loader.
Silent: below warning in any case: training on the full batch, on a graph, or overfitting one batch
on purpose look the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import BATCH_SIZE, REPEATED


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.9  # of the steps
    steps: float = 20


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    repeated = history.batch(REPEATED)
    size = history.batch(BATCH_SIZE)
    if repeated.steps.sum() < limit.steps or not len(size):
        return
    steps = int(repeated.steps.sum())
    # A model that is called several times in a step is asked about its first batch.
    same = min(repeated.total, float(steps))
    share = same / steps
    if share >= limit.share:
        yield Finding(
            "repeated-batch",
            "info",
            f"{same:.0f} of {steps} steps used the batch of the step "
            f"before: the network sees {size.value[-1]:.0f} samples and no others.",
            "Iterate over the loader (for x, y in loader: …) instead of calling next(iter(loader)) "
            "in every step; if the batch is all the data there is, nothing is wrong.",
            first_step=int(repeated.step[0]),
            last_step=int(repeated.step[-1]),
            evidence={"share of repeated batches": Evidence(share, limit.share)},
        )


RULE = Rule(
    "repeated-batch",
    Cause.DATA,
    look,
    reads=(
        "series.@batch.repeated.mean",
        "series.@batch.size.mean",
    ),
    defaults=Thresholds(),
)
