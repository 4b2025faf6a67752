"""Predictions and targets are broadcast against each other.

Cause: predictions are (N, 1) and targets (N,), so that their difference is N × N; or answers and
labels are, where an evaluation compares them.
Evidence: the shapes that enter the loss, in every record.
Fix: bring both to one shape.
Silent: where one of them is expanded and nothing is multiplied out (a target of one number, a
weight per channel), and, where the target's shape is not known, for a run that does its job.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, LossFacts
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.runs.names import EQUAL


class Thresholds(NamedTuple):
    """What may be changed."""

    records: float = 2  # losses that were made so


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    yield from _of_scores(history)
    records = history.records("train")
    bad = [record for record in records if record.fact("broadcast") and _multiplies_out(record)]
    if len(bad) < min(limit.records, len(records)) or not bad:
        return
    first = bad[0]
    given, wanted = [tuple((first.fact(side) or {}).get("shape") or ()) for side in _SIDES]
    if not wanted:  # what was subtracted is not kept: only the shape of the difference is known
        went = progress(history)
        if went is not None and went.does_its_job:
            return
        wanted = tuple(first.fact("broadcast_to"))[-1:]
    where = source_line(first.fact("source"))
    yield Finding(
        "loss-broadcast",
        "error",
        f"the loss{where} compares predictions of shape {given} with targets of shape "
        f"{wanted}: they are broadcast against each other, and the best answer is then the mean of "
        "all targets.",
        "Bring both to one shape, as in criterion(output.squeeze(1), target).",
        first_step=first.step,
        last_step=bad[-1].step,
        evidence={"losses made so": Evidence(len(bad), limit.records)},
        lines=file_and_line(first.fact("source")),
    )


def _of_scores(history: History) -> Iterator[Finding]:
    """Answers that an evaluation compares each with each label."""
    records = [
        record
        for record in history.records("eval")
        if record.fact("kind") == EQUAL and record.fact("broadcast")
    ]
    # Labels that are compared with each other look like answers where all of these are right.
    if not records or all(record.fact("accuracy") == 1.0 for record in records):
        return
    first = records[0]
    given, wanted = [tuple((first.fact(side) or {}).get("shape") or ()) for side in _SIDES]
    source = first.fact("source")
    yield Finding(
        "loss-broadcast",
        "warning",
        f"the evaluation{source_line(source)} compares answers of shape {given} with labels of "
        f"shape {wanted}: each answer with each label, which is no score.",
        "Bring both to one shape, as in pred.squeeze(1) == y.",
        first_step=min(first.step, max(0, history.steps - 1)),
        last_step=history.steps - 1,
        evidence={"evaluations": Evidence(len(records))},
        lines=file_and_line(source),
    )


_SIDES = ("prediction", "target")


def _multiplies_out(record: LossFacts) -> bool:
    """Whether what is compared has more elements than either side."""
    shapes = [list((record.fact(side) or {}).get("shape") or []) for side in _SIDES]
    if not all(shapes):
        # A column, or a row, that has become a square.
        given, joined = next(filter(None, shapes), []), list(record.fact("broadcast_to") or [])
        length = max(given, default=0)
        return length > 1 and math.prod(given) == length and joined == [length, length]
    longest = max(map(len, shapes))
    padded = [[1] * (longest - len(shape)) + shape for shape in shapes]
    elements = math.prod(max(pair) for pair in zip(*padded, strict=True))
    return bool(elements > max(math.prod(shape) for shape in shapes))


RULE = Rule(
    "loss-broadcast",
    Cause.LOSS,
    look,
    reads=(
        *PROGRESS_READS,
        "loss.accuracy",
        "loss.broadcast_to",
        "loss.prediction",
        "loss.source",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
