"""Loss and target do not fit each other.

Cause: squared error on the numbers of classes, a binary loss on several classes, cross entropy with
a single column of logits.
Evidence: the kind of loss, and type, range and count of different targets, in every record.
Fix: the loss that fits the target.
Silent: for regression to whole numbers that are no classes (ages, counts: many different values,
some much rarer than others, or not from 0 on), and for one-hot targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, LossFacts
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.words import place


@dataclass(frozen=True)
class Thresholds:
    """What may be changed."""

    classes: float = 50  # different whole targets from 0 on, up to which they are taken for classes
    even: float = 0.7  # spread of the targets, by that of numbers which are equally frequent
    records: float = 2  # losses that were made so


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    records = history.records("train")
    told = [(each, why) for each in records if (why := _mismatch(each, limit))]
    if len(told) < limit.records or len(told) < 0.5 * len(records):
        return
    first, (message, fix) = told[0]
    where = place(first.fact("source"))
    yield Finding(
        "loss-target-mismatch",
        "error",
        f"the loss{where} is {first.fact('kind')}, and {message}.",
        fix,
        first_step=first.step,
        last_step=told[-1][0].step,
        evidence={
            "different targets": Evidence((first.fact("target") or {}).get("distinct", 0)),
            "losses made so": Evidence(len(told), limit.records),
        },
    )


def _mismatch(record: LossFacts, limit: Thresholds) -> tuple[str, str] | None:
    """What does not fit, and what would."""
    kind = record.fact("kind")
    target, prediction = record.fact("target") or {}, record.fact("prediction") or {}
    distinct, low, high = target.get("distinct"), target.get("min"), target.get("max")
    shape = prediction.get("shape") or []
    if kind == "cross_entropy" and len(shape) == 2 and shape[1] == 1:
        return (
            "the model has a single output: its softmax is always 1",
            "Use two outputs, or BCEWithLogitsLoss with targets of 0.0 and 1.0.",
        )
    if distinct is None or low is None or high is None or not target.get("integral"):
        return None
    if kind in ("bce", "bce_with_logits") and (high > 1 or low < 0):
        return (
            f"its targets are whole numbers from {low:g} to {high:g}: a binary loss knows 0 and 1",
            "Use CrossEntropyLoss with one output a class, or one-hot targets.",
        )
    few = 3 <= distinct <= limit.classes and low == 0 and high == distinct - 1
    few = few and _are_spread(target, int(distinct), limit)
    if kind in ("mse", "l1", "smooth_l1", "huber") and few and _is_one_number(shape):
        return (
            (
                f"its targets are the numbers of {distinct} classes: it takes class 9 for nine "
                "times as much as class 1"
            ),
            f"Use CrossEntropyLoss with {distinct} outputs and the class numbers as targets.",
        )
    return None


def _are_spread(target: dict[str, Any], distinct: int, limit: Thresholds) -> bool:
    """Whether each number is about as frequent as any other: classes are, counts are not."""
    even = math.sqrt((distinct**2 - 1) / 12)
    std = target.get("std")
    return std is None or float(std) >= limit.even * even


def _is_one_number(shape: list[int]) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


RULE = Rule(
    "loss-target-mismatch",
    Cause.LOSS,
    look,
    reads=(
        "loss.kind",
        "loss.prediction",
        "loss.source",
        "loss.target",
    ),
    defaults=Thresholds(),
)
