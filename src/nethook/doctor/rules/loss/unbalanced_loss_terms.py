"""Terms of very different size are added, and the small one is not learnt.

Cause: a sum over samples beside a mean over elements (the KL part of a VAE), an error in years
beside a cross entropy: the gradient of one drowns that of the other.
Evidence: the values of the terms when training begins and for long, and that the small one ends
where an answer that is the same for all inputs would be, over the last records. Terms need not
differ that much at the start where the one that wins is brought down to nothing, and to nothing
beside the other (the KL part of a VAE whose code says nothing any more).
Fix: bring the terms to one size: divide by the same number, scale the targets, give weights.
Silent: where the small term is learnt, where it is a penalty or has no targets (an entropy bonus,
an adversary), where terms are of one size, and where nothing is learnt of the large one either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, LossFacts
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.quantiles import median
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    ratio: float = 10  # of the terms at the start
    gone: float = 0.02  # of a term, by its start and by the other: it is brought down to nothing
    records: float = 8
    learnt: float = 0.93  # of what a constant answer scores: above it nothing is learnt
    above: float = 1.5  # times that: it is something else that keeps the term up
    steps: float = 60


class _Course(NamedTuple):
    """One term over the run."""

    kinds: tuple[str, ...]
    values: list[float]  # with their factor
    constants: list[float]  # what a constant answer would score, without it
    factor: float


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    if history.steps < limit.steps:
        return
    for name in dict.fromkeys(record.name for record in history.records("train")):
        records = [record for record in history.records("train", name) if record.fact("parts")]
        if len(records) < limit.records:
            continue
        found = _found(records, limit)
        if found is not None:
            yield found
            return


def _found(records: list[LossFacts], limit: Thresholds) -> Finding | None:
    courses = _courses(records)
    for small in courses:
        if not _learns_nothing(small, limit):
            continue
        for large in courses:
            ratio = _times(large, small)
            if large is small or ratio is None or not _fell(large):
                continue
            if ratio < limit.ratio and not _gone(large, small, limit.gone):
                continue
            first = records[0]
            now = abs(large.values[-1] / small.values[-1]) if small.values[-1] else math.inf
            return Finding(
                "unbalanced-loss-terms",
                "warning",
                _message(first, large, small, ratio, gone=ratio < limit.ratio),
                "Bring the terms to one size: the same reduction (mean or sum) for all, targets "
                "scaled to a spread of 1, or a weight per term.",
                first_step=first.step,
                last_step=records[-1].step,
                evidence={
                    "ratio of the terms": Evidence(ratio, limit.ratio),
                    "ratio at the end": Evidence(now),
                    "small term, by what a constant answer scores": Evidence(
                        _late(small.values) / _usual(small), limit.learnt
                    ),
                },
                lines=file_and_line(first.fact("source")),
            )
    return None


def _message(first: LossFacts, large: _Course, small: _Course, ratio: float, *, gone: bool) -> str:
    where = source_line(first.fact("source"))
    stays = (
        f"at {number(small.values[-1])}, where one answer for all inputs would be "
        f"({number(_usual(small))})"
    )
    if gone:
        return (
            f"of the terms of the loss{where}, {_called(large)} was brought down to nothing (from "
            f"{number(large.values[0])} to {number(large.values[-1])}), and {_called(small)} is "
            f"still {stays}: it weighs too little beside the other to be learnt."
        )
    return (
        f"two terms of the loss{where} differ in size by a factor of {number(ratio)} "
        f"({_called(large)} {number(large.values[0])}, {_called(small)} "
        f"{number(small.values[0])} at the start): the large one went to "
        f"{number(large.values[-1])}, and the small one is still {stays}."
    )


def _courses(records: list[LossFacts]) -> list[_Course]:
    """The terms of records that are made alike; the value that one of them lacks is the rest."""
    shape = [tuple(part.get("kinds") or ()) for part in records[-1].fact("parts")]
    columns: list[tuple[list[float], list[float]]] = [([], []) for _ in shape]
    factors = [1.0] * len(shape)
    for record in records:
        parts: list[dict[str, Any]] = record.fact("parts")
        if [tuple(part.get("kinds") or ()) for part in parts] != shape:
            continue
        factors = [float(part.get("factor") or 0.0) for part in parts]
        values = _values(record, factors)
        if values is None:
            continue
        constants = record.fact("part_constants") or [math.nan] * len(shape)
        for (course, scores), value, score in zip(columns, values, constants, strict=False):
            course.append(value)
            scores.append(math.nan if score is None else float(score))
    return [
        _Course(kinds, values, constants, factor)
        for kinds, (values, constants), factor in zip(shape, columns, factors, strict=True)
    ]


def _values(record: LossFacts, factors: list[float]) -> list[float] | None:
    total, raw = record.fact("value"), record.fact("part_values") or []
    if total is None or len(raw) != len(factors):
        return None
    values = [
        math.nan if value is None else float(value) * factor
        for value, factor in zip(raw, factors, strict=True)
    ]
    unknown = [at for at, value in enumerate(values) if not math.isfinite(value)]
    known = math.fsum(value for value in values if math.isfinite(value))
    if len(unknown) > 1 or not math.isfinite(total):
        return None
    if unknown:
        values[unknown[0]] = float(total) - known
    elif abs(known - total) > 0.02 * max(abs(total), *map(abs, values)):
        return None  # there is more in it than these
    return values


def _learns_nothing(course: _Course, limit: Thresholds) -> bool:
    if len(course.values) < limit.records or course.factor <= 0:
        return False
    scores = [score for score in course.constants if math.isfinite(score) and score > 0]
    if len(scores) < limit.records:
        return False
    usual = median(scores) * course.factor
    return limit.learnt * usual < _late(course.values) < limit.above * usual


def _usual(course: _Course) -> float:
    scores = [score for score in course.constants if math.isfinite(score)]
    return median(scores) * course.factor


def _late(values: list[float]) -> float:
    return median(values[-max(4, len(values) // 4) :])


def _times(large: _Course, small: _Course) -> float | None:
    """How much larger one term is than the other in the first steps."""
    pairs = zip(large.values[:4], small.values[:4], strict=False)
    ratios = [abs(a / b) for a, b in pairs if b and math.isfinite(a / b)]
    return median(ratios) if len(ratios) >= 3 else None


def _fell(course: _Course) -> bool:
    """Whether the term that wins is learnt."""
    return _late(course.values) < 0.7 * median(course.values[:4])


def _gone(course: _Course, beside: _Course, part: float) -> bool:
    """Whether a term was brought down to nothing, by its start and by another one."""
    late = abs(_late(course.values))
    began = abs(median(course.values[:4]))
    return late < part * began and late < part * abs(_late(beside.values))


def _called(course: _Course) -> str:
    known = [kind for kind in course.kinds if kind not in ("other", "linear", "squares")]
    return known[0] if known else "one written by hand"


RULE = Rule(
    "unbalanced-loss-terms",
    Cause.LOSS,
    look,
    reads=(
        "loss.part_constants",
        "loss.part_values",
        "loss.parts",
        "loss.source",
        "loss.value",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
