"""One answer for every input.

Cause: a network that has given up on telling its inputs apart: unbalanced weights of classes, too
large steps, dead layers.
Evidence: how different the predictions are, against how different the targets are, in most of the
later losses.
Fix: balance the classes; look at what else was found.
Silent: where targets are of one class themselves, in the first steps, and where the run improves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Floats, History, LossFacts
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, Progress, progress
from nethook.doctor.signals.quantiles import median


class Thresholds(NamedTuple):
    """What may be changed."""

    entropy: float = 0.15  # of predictions, by that of targets
    records: float = 3
    steps: float = 40  # before which one answer for all is how a network begins
    accuracy: float = 0.5  # below which a falling loss with weights of classes is not believed


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    records = [record for record in history.records("train") if record.fact("argmax_counts")]
    records = [record for record in records if record.fact("class_counts")]
    # Records lie further and further apart: the second half is that of the steps.
    late = [record for record in records if record.step >= history.steps // 2]
    later = late if len(late) >= limit.records else records[-int(limit.records) :]
    if len(later) < limit.records or history.steps < limit.steps:
        return
    ratios = [_ratio(record) for record in later]
    measured = [ratio for ratio in ratios if ratio is not None]
    went = progress(history)
    if len(measured) < limit.records or (went is not None and _is_learning(went, later, limit)):
        return
    # One answer in most of them, and still at the end: a network that has just begun to tell its
    # inputs apart is on its way.
    ratio = max(median(measured), measured[-1])
    if ratio > limit.entropy:
        return
    every = [_ratio(record) for record in records]
    onset = next(
        (
            record.step
            for record, r in zip(records, every, strict=True)
            if r is not None and r <= limit.entropy
        ),
        later[0].step,
    )
    counts = _array(later[-1].fact("argmax_counts"))
    yield Finding(
        "class-collapse",
        "error",
        f"the network gives one answer for nearly every input (class {int(np.argmax(counts))} "
        f"{float(counts.max() / max(1.0, counts.sum())):.0%} of the time), and the targets "
        "are spread over several classes.",
        "Look at the weights of classes, at the balance of the data and at the learning rate.",
        first_step=onset,
        last_step=later[-1].step,
        evidence={"entropy of answers by that of targets": Evidence(ratio, limit.entropy)},
    )


def _is_learning(went: Progress, later: list[LossFacts], limit: Thresholds) -> bool:
    """Whether the loss tells of a network that learns.

    One with weights for classes may fall although nothing is told apart: then the answers decide.
    """
    if not went.does_its_job or went.constant is not None:
        return went.does_its_job
    right = [record.fact("accuracy") for record in later if record.fact("accuracy") is not None]
    return not right or median(right) > limit.accuracy


def _ratio(record: LossFacts) -> float | None:
    answers, targets = _array(record.fact("argmax_counts")), _array(record.fact("class_counts"))
    wanted = _entropy(targets)
    # Below 0.3 nat (more than nine targets in ten of one class) one answer for all may be right.
    return _entropy(answers) / wanted if wanted > 0.3 else None


def _array(counts: Any) -> Floats:
    values = counts.values() if isinstance(counts, dict) else counts
    return np.asarray([float(count) for count in values or [0]], dtype=np.float64)


def _entropy(counts: Floats) -> float:
    share = counts[counts > 0] / max(1.0, float(counts.sum()))
    return float(-(share * np.log(share)).sum())


RULE = Rule(
    "class-collapse",
    Cause.SYMPTOM,
    look,
    reads=(
        *PROGRESS_READS,
        "loss.accuracy",
        "loss.argmax_counts",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
