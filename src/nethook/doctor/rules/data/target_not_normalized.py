"""Targets are far larger than anything that a fresh network returns.

Cause: prices, populations or seconds as they stand, under a squared or absolute error: outputs
begin about zero and have a long way to go, and squared errors make gradients as large as that.
Evidence: size of the targets of the first losses, how far below it predictions begin, and a run
that does not do its job: its loss stays about what one answer for all inputs would score, or is
not finite.
Fix: subtract the mean and divide by the spread of the training targets, and undo that when the
network is used.
Silent: where the run does its job, where predictions begin at the size of the targets (a last layer
that is scaled, or a bias that begins at their mean), where targets change in the course of the run
(returns of an agent), and for losses of several terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, LossFacts
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, longest_loss, progress
from nethook.doctor.signals.quantiles import median
from nethook.text.numbers import ascii_number as number

KINDS: Final = frozenset({"mse", "l1", "smooth_l1", "huber"})
"""Losses that compare numbers with numbers."""
FIRST: Final = 3
"""Records of a loss that tell how it began."""


class Thresholds(NamedTuple):
    """What may be changed."""

    size: float = 100  # root mean square of the targets
    begins: float = 0.1  # size of the first predictions, by that
    error: float = 0.64  # by the spread of the targets; one answer for all has about 0.8
    changes: float = 2  # size of the last targets, by that of the first, either way
    steps: float = 60


class _Numbers(NamedTuple):
    mean: float
    std: float

    @property
    def size(self) -> float:
        return math.hypot(self.mean, self.std)


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    named = longest_loss(history)
    if named is None or history.steps < limit.steps:
        return
    records = [record for record in history.records("train", named[0]) if _compares(record)]
    targets = [_numbers(record, "target") for record in records]
    known = [numbers for numbers in targets if numbers is not None]
    if len(known) < FIRST or len(known) < len(records):
        return
    size = median([numbers.size for numbers in known[:FIRST]])
    # Predictions of later steps are on their way already.
    began = _numbers(records[0], "prediction")
    if not size > limit.size or began is None or not began.size < limit.begins * size:
        return
    ends = median([numbers.size for numbers in known[-FIRST:]])
    if not size / limit.changes < ends < size * limit.changes:
        return
    trouble = _trouble(history, records, known, limit)
    if not trouble:
        return
    mean, std = (median([numbers[at] for numbers in known]) for at in (0, 1))
    yield Finding(
        "target-not-normalized",
        "warning",
        f"targets have mean {number(mean)} and spread {number(std)}, predictions began at a size "
        f"of {number(began.size)}, and {trouble}.",
        "Subtract the mean and divide by the standard deviation of the training targets, and undo "
        "that where predictions are used (or let the last layer do it).",
        first_step=records[0].step,
        last_step=max(records[0].step, history.steps - 1),
        evidence={
            "size of the targets": Evidence(size, limit.size),
            "size of the first predictions, by that": Evidence(began.size / size, limit.begins),
        },
    )


def _compares(record: LossFacts) -> bool:
    """Whether a loss is one comparison of numbers, and nothing besides."""
    return (
        record.fact("kind") in KINDS and not record.fact("terms") and not record.fact("broadcast")
    )


def _numbers(record: LossFacts, of: str) -> _Numbers | None:
    facts: dict[str, Any] = record.fact(of) or {}
    mean, std = facts.get("mean"), facts.get("std")
    if mean is None or std is None or not (math.isfinite(mean) and math.isfinite(std)):
        return None
    return _Numbers(float(mean), float(std))


def _trouble(
    history: History, records: list[LossFacts], targets: list[_Numbers], limit: Thresholds
) -> str:
    """What large targets have done; "" where the run does its job."""
    went = progress(history)
    if went is None:
        return ""
    if not went.finite:
        return "the loss does not stay finite"
    if went.constant is not None:
        if went.does_its_job:
            return ""
        return (
            f"the loss is {number(went.end)} in the end, where one answer for all inputs would "
            f"score {number(went.constant)}"
        )
    # Of several numbers per sample it is not known what one answer would score, but their spread
    # is an upper bound.
    last = list(zip(records, targets, strict=True))[-FIRST:]
    errors = [
        record.fact("error") / numbers.std
        for record, numbers in last
        if record.fact("error") is not None and numbers.std > 0
    ]
    if not errors or not median(errors) > limit.error:
        return ""
    return f"errors are {number(median(errors))} times the spread of the targets in the end"


RULE = Rule(
    "target-not-normalized",
    Cause.DATA,
    look,
    reads=(
        *PROGRESS_READS,
        "loss.error",
        "loss.prediction",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
