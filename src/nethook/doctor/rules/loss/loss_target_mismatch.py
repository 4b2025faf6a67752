"""Loss and target do not fit each other.

Cause: squared error on the numbers of classes, a binary loss on several classes, cross entropy with
a single column of logits; 0 and 1 for a loss that takes -1 and 1, or for a hinge that is written by
hand. Cross entropy on rows with several ones: classes that do not exclude each other, of which a
softmax chooses one. An `ignore_index` that is the number of a real class; a `blank` of CTC that the
texts contain.
Evidence: the kind of loss, and type, range and count of different targets, in every record. Of an
`ignore_index`: all targets that it leaves are of one class. A question where it leaves several, and
whole samples do not count. Of rows with several ones: how many there are in a row; a question where
each row has one at least, for a choice among several right answers may be meant.
Fix: the loss that fits the target; an `ignore_index` or `blank` that no target has.
Silent: for regression to whole numbers that are not classes (ages, counts: many different values,
some much rarer than others, or not from 0 on), for one-hot targets, for rows with several ones that
compare samples with each other (as many columns as rows), for an `ignore_index` that is
no class of the output (-100), and for one that hides places of a sequence (padding).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, LossFacts
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, number, text
from nethook.doctor.signals.examined import first as first_result
from nethook.doctor.signals.progress import several_classes
from nethook.runs.names import BATCH_SIZE

SIGNS: Final = "targets are signs"


class Thresholds(NamedTuple):
    """What may be changed."""

    classes: float = 50  # different whole targets from 0 on, up to which they are taken for classes
    even: float = 0.7  # spread of the targets, by that of numbers which are equally frequent
    seen: float = 0.6  # share of them that some batch has
    records: float = 2  # losses that were made so
    hidden: float = 0.05  # share of the targets that are left out, and of those that are not


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    records = history.records("train")
    told = [(record, why) for record in records if (why := _mismatch(record))]
    classes = [record for record in records if _may_be_classes(record)]
    if len(classes) >= max(limit.records, 0.5 * len(records)) and (count := _count(classes, limit)):
        told = [(record, _on_classes(count)) for record in classes]
    if len(told) < limit.records or len(told) < 0.5 * len(records):
        found = (*_left_out(history, limit), *_no_signs(history), *_several(history, limit))
        yield from found[:1]
        return
    first, (message, fix) = told[0]
    where = source_line(first.fact("source"))
    yield Finding(
        "loss-target-mismatch",
        "error",
        f"the loss{where} is {first.fact('kind')}, and {message}.",
        fix,
        first_step=first.step,
        last_step=told[-1][0].step,
        evidence={
            "different targets": Evidence((first.fact("target") or {}).get("distinct") or 0),
            "losses made so": Evidence(len(told), limit.records),
        },
        lines=file_and_line(first.fact("source")),
    )


def _several(history: History, limit: Thresholds) -> Iterator[Finding]:
    """A choice of one class, where targets have several."""
    known = [(record, several_classes(record)) for record in history.records("train")]
    told = [
        (record, sums) for record, sums in known if sums is not None and not _compares_rows(record)
    ]
    if len(told) < limit.records or len(told) < 0.5 * len(known):
        return
    first, last = told[0][0], told[-1][0]
    fewest, most = min(sums[0] for _, sums in told), max(sums[1] for _, sums in told)
    none = (
        "; rows without any have no loss at all"
        if fewest < 1
        else ". Is it to choose one among several right answers?"
    )
    yield Finding(
        "loss-target-mismatch",
        "warning" if fewest < 1 else "info",
        f"the loss{source_line(first.fact('source'))} is cross_entropy, whose softmax shares one "
        f"whole among the classes, and its targets have {fewest:.0f} to {most:.0f} ones in a row: "
        f"classes that do not exclude each other{none}" + ("." if fewest < 1 else ""),
        "Use BCEWithLogitsLoss, a yes or no for each class (sigmoid(output) > 0.5 predicts it); or "
        "divide each row by its sum, where one answer is to be chosen among several right ones.",
        first_step=first.step,
        last_step=last.step,
        evidence={"ones in a row": Evidence(most, 1), "losses made so": Evidence(len(told))},
        lines=file_and_line(first.fact("source")),
    )


def _compares_rows(record: LossFacts) -> bool:
    """Whether every row is held against every other, as in contrastive learning."""
    shape = (record.fact("prediction") or {}).get("shape") or []
    return len(shape) == 2 and shape[0] == shape[1]


def _no_signs(history: History) -> Iterator[Finding]:
    """A loss that takes -1 and 1 is given 0 and 1."""
    result = first_result(history, SIGNS)
    if result is None:
        return
    share = number(result, "share", 0.0)
    yield finding_of(
        history,
        result,
        "loss-target-mismatch",
        f"the loss is {text(result, 'kind')}, which takes 1 and -1 as targets, and {share:.0%} of "
        "them are 0: these pairs or samples are not pushed apart.",
        "Give it signs: 2 * target - 1.",
        {"share of zeros": Evidence(share)},
    )


def _mismatch(record: LossFacts) -> tuple[str, str] | None:
    """What does not fit in one loss, and what would."""
    kind = record.fact("kind")
    target, prediction = record.fact("target") or {}, record.fact("prediction") or {}
    low, high = target.get("min"), target.get("max")
    shape = prediction.get("shape") or []
    if kind == "cross_entropy" and len(shape) == 2 and shape[1] == 1:
        return (
            "the model has a single output: its softmax is always 1",
            "Use two outputs, or BCEWithLogitsLoss with targets of 0.0 and 1.0.",
        )
    if low is None or high is None or not target.get("integral"):
        return None
    blank = (record.fact("options") or {}).get("blank")
    if kind == "ctc" and blank in (low, high) and "between" in target:  # else padding counted, too
        return (
            (
                f"its targets contain {blank}, which is its blank: what means nothing in the "
                "output is a character of the texts, and can be neither learnt nor written"
            ),
            "Give the blank a number of its own, CTCLoss(blank=len(alphabet)), and an output.",
        )
    if kind in ("bce", "bce_with_logits") and (high > 1 or low < 0):
        return (
            f"its targets are whole numbers from {low:g} to {high:g}: a binary loss knows 0 and 1",
            "Use CrossEntropyLoss with one output per class, or one-hot targets.",
        )
    return None


def _left_out(history: History, limit: Thresholds) -> Iterator[Finding]:
    """An `ignore_index` that is the number of a class."""
    records = [record for record in history.records("train") if _hides_a_class(record, limit)]
    if len(records) < limit.records:
        return
    alone = all((record.fact("target") or {}).get("distinct") == 1 for record in records)
    size = history.batch(BATCH_SIZE)
    samples = len(size) > 0 and all(
        (record.fact("target") or {}).get("shape") == [int(size.value[-1])] for record in records
    )
    if not (alone or samples):
        return
    first = records[0]
    ignored = int((first.fact("options") or {})["ignore_index"])
    share = float((first.fact("target") or {})["ignored"])
    rest = (
        "all others are of one class, so that there is nothing to tell apart"
        if alone
        else "each of them is the label of a sample. Is that meant?"
    )
    yield Finding(
        "loss-target-mismatch",
        "error" if alone else "info",
        f"the loss{source_line(first.fact('source'))} leaves out targets of class {ignored} "
        f"(ignore_index={ignored}), {share:.0%} of them, although the network has an output for "
        f"that class; {rest}{'.' if alone else ''}",
        "Use an ignore_index that is the number of no class (-100 is the default), or a loss of "
        "its own for this target.",
        first_step=first.step,
        last_step=records[-1].step,
        evidence={
            "share of targets left out": Evidence(share, limit.hidden),
            "classes of the others": Evidence((first.fact("target") or {}).get("distinct") or 0, 1),
        },
        lines=file_and_line(first.fact("source")),
    )


def _hides_a_class(record: LossFacts, limit: Thresholds) -> bool:
    """Whether a part of the targets is left out by the number of a class that is an output."""
    ignored = (record.fact("options") or {}).get("ignore_index")
    shape = (record.fact("prediction") or {}).get("shape") or []
    share = (record.fact("target") or {}).get("ignored")
    if ignored is None or share is None or len(shape) < 2:
        return False
    return bool(0 <= ignored < shape[1] and limit.hidden <= share <= 1 - limit.hidden)


def _may_be_classes(record: LossFacts) -> bool:
    """Whether an error is taken of one number, and all targets are whole and not below zero."""
    target, prediction = record.fact("target") or {}, record.fact("prediction") or {}
    return (
        record.fact("kind") in ("mse", "rmse", "l1", "smooth_l1", "huber")
        and _is_one_number(prediction.get("shape") or [])
        and bool(target.get("integral"))
        and (target.get("min") or 0) >= 0
        and target.get("max") is not None
    )


def _count(records: list[LossFacts], limit: Thresholds) -> int:
    """How many classes the targets of all these losses are; 0 where they are not classes.

    A small batch does not have all of them. Each is about as frequent as any other: counts are not.
    """
    targets = [record.fact("target") for record in records]
    count = int(max(target["max"] for target in targets)) + 1
    most = max(int(target.get("distinct") or 0) for target in targets)
    even = math.sqrt((count**2 - 1) / 12)  # the spread of 0 … count - 1, all equally frequent
    spread = [float(target["std"]) for target in targets if target.get("std") is not None]
    wide = not spread or sorted(spread)[len(spread) // 2] >= limit.even * even
    begins = min(target.get("min") or 0 for target in targets) == 0
    fits = 3 <= count <= limit.classes and most >= limit.seen * count
    return count if begins and fits and wide else 0


def _on_classes(count: int) -> tuple[str, str]:
    return (
        (
            f"its targets are the numbers of {count} classes: it takes class {count - 1} for "
            f"{count - 1} times as much as class 1"
        ),
        f"Use CrossEntropyLoss with {count} outputs and the class numbers as targets.",
    )


def _is_one_number(shape: list[int]) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


RULE = Rule(
    "loss-target-mismatch",
    Cause.LOSS,
    look,
    reads=(
        f"examined.{SIGNS}",
        f"examined.{SIGNS}.kind",
        f"examined.{SIGNS}.lines",
        f"examined.{SIGNS}.share",
        "loss.kind",
        "loss.options",
        "loss.prediction",
        "loss.source",
        "loss.target",
        "series.@batch.size.mean",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
