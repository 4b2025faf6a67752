"""Batches are (nearly) of one class, or follow the order of the targets.

Cause: data is read in order, class by class or sorted, and the loader does not shuffle; or it is
split in that order, so that evaluations have classes which training never had.
Evidence: how alike the targets of a batch are, against those of the run: of two targets from one
batch, how much more often they are equal (or how much closer they are) than of two from anywhere.
Of a split: the share of evaluated targets whose class is in no record of training.
Fix: `shuffle=True`; shuffle before the split.
Silent: where batches are as mixed as the run, or have one target each. A note where each class
comes once and not again (classes that are learnt one after the other on purpose), where numbers
drift slowly (a series in time), and where the network knows all classes although they come in
order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Floats, History, LossFacts
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.evaluated import EVALUATED_READS, answers
from nethook.doctor.signals.progress import PROGRESS_READS, constant_score
from nethook.doctor.signals.quantiles import median


class Thresholds(NamedTuple):
    """What may be changed."""

    alike: float = 0.5  # 0: batches are as mixed as the run; 1: one target per batch
    numbers: float = 0.8  # the same, for targets that are numbers
    records: float = 8
    batch: float = 4  # targets in a batch
    correlation: float = 0.25  # of answers and targets within a batch
    unseen: float = 0.3  # share of evaluated targets of classes that training never had
    loss: float = 0.5  # by that of a constant answer: below it in its worst steps, all is known


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    for name in dict.fromkeys(record.name for record in history.records("train")):
        records = history.records("train", name)
        found = _of_classes(history, name, records, limit) or _of_numbers(records, limit)
        if found is not None:
            yield found
            return
    yield from _split(history, limit)


def _split(history: History, limit: Thresholds) -> Iterator[Finding]:
    """Evaluations of classes that were never trained on."""
    told = answers(history)
    if told is None or told.unseen < limit.unseen:
        return
    source = told.first.fact("source")
    yield Finding(
        "unshuffled-data",
        "warning",
        f"{told.unseen:.0%} of the targets in the evaluation{source_line(source)} are of classes "
        "that no record of training has: the data seems to be sorted by class, and was split in "
        "that order.",
        "Shuffle the samples before they are split: torch.utils.data.random_split, or a "
        "permutation of the indices.",
        first_step=min(told.first.step, max(0, history.steps - 1)),
        last_step=history.steps - 1,
        evidence={"targets of classes never trained on": Evidence(told.unseen, limit.unseen)},
        lines=file_and_line(source),
    )


def _of_classes(
    history: History, name: str, records: tuple[LossFacts, ...], limit: Thresholds
) -> Finding | None:
    counts = [_counts(record) for record in records]
    kept = [
        (record, count)
        for record, count in zip(records, counts, strict=True)
        if count is not None and count.sum() >= limit.batch
    ]
    if len(kept) < limit.records or len({len(count) for _, count in kept}) != 1:
        return None
    table = np.stack([count for _, count in kept])
    within, between = _equal(table), _equal(table.sum(0, keepdims=True))
    if not between < 0.95:  # one class, wherever it stands
        return None
    alike = (within - between) / (1 - between)
    chosen = table.argmax(1)
    if alike < limit.alike or len(set(chosen.tolist())) < 2:
        return None
    again = _comes_again(chosen.tolist())
    knows = _knows_all(history, name, limit)
    first = kept[0][0]
    what = "each batch is nearly of one class" if alike > 0.8 else "batches have few classes each"
    usual = median(table.max(1) / table.sum(1))
    return Finding(
        "unshuffled-data",
        "warning" if again and not knows else "info",
        f"{what}: the most frequent one has {usual:.0%} of a batch, and "
        f"{float((table.sum(0) / table.sum()).max()):.0%} of all targets that were looked at"
        f"{source_line(first.fact('source'))}"
        + ("; classes come in order, again and again, so that each is forgotten for the next."
           if again and not knows else "; if classes are to be learnt one after the other, "
           "nothing is wrong."),
        "Shuffle: DataLoader(..., shuffle=True), or a permutation of the samples in every epoch.",
        first_step=first.step,
        last_step=kept[-1][0].step,
        evidence={
            "likeness of targets in a batch": Evidence(alike, limit.alike),
            "losses looked at": Evidence(len(kept), limit.records),
        },
        lines=file_and_line(first.fact("source")),
    )  # fmt: skip


def _of_numbers(records: tuple[LossFacts, ...], limit: Thresholds) -> Finding | None:
    """Targets that are numbers: little spread in a batch, and much between batches."""
    kept = [
        (record, float(target["mean"]), float(target["std"]), _length(target))
        for record in records
        if (target := record.fact("target") or {}).get("std") is not None
        and target.get("mean") is not None
        and not target.get("binary_share")
        and limit.batch <= _length(target)
    ]
    if len(kept) < limit.records:
        return None
    means = np.asarray([mean for _, mean, _, _ in kept])
    inside = np.asarray([std for _, _, std, _ in kept])
    lengths = np.asarray([length for _, _, _, length in kept], dtype=np.float64)
    # The variance of a sample of n is too small by 1 / n; that of means has their own error in it.
    within = float(np.mean(inside**2 * lengths / (lengths - 1)))
    total = float(np.var(means)) + float(np.mean(inside**2))
    if not (math.isfinite(total) and total > 0):
        return None
    alike = 1 - within / total
    if alike < limit.numbers:
        return None
    first = kept[0][0]
    follows = _follows_the_batch(kept, limit)
    meant = (
        "the predictions tell batches apart and not the samples in them"
        if follows
        else "for a series in time that may be meant"
    )
    return Finding(
        "unshuffled-data",
        "warning" if follows else "info",
        f"the targets of a batch are close to each other (spread {math.sqrt(within):.3g}) and far "
        f"from those of other batches (spread {math.sqrt(total):.3g} over the run)"
        f"{source_line(first.fact('source'))}: data seems to come in order; {meant}.",
        "If samples do not depend on each other, shuffle them: DataLoader(..., shuffle=True), or a "
        "permutation in every epoch.",
        first_step=first.step,
        last_step=kept[-1][0].step,
        evidence={
            "likeness of targets in a batch": Evidence(alike, limit.numbers),
            "losses looked at": Evidence(len(kept), limit.records),
        },
        lines=file_and_line(first.fact("source")),
    )


def _follows_the_batch(kept: list[tuple[LossFacts, float, float, int]], limit: Thresholds) -> bool:
    """Whether the network answers with the targets of the batches before.

    Within a batch its answers then have nothing to do with the targets; and batches come again, so
    that it is no series that goes on and on.
    """
    late = kept[len(kept) // 2 :]
    alike = [record.fact("correlation") for record, _, _, _ in late]
    known = [abs(float(value)) for value in alike if value is not None]
    means = [mean for _, mean, _, _ in kept]
    turns = sum(b < a for a, b in itertools.pairwise(means))
    returns = 2 <= turns <= len(means) - 3
    return returns and len(known) >= 3 and median(known) < limit.correlation


def _counts(record: LossFacts) -> Floats | None:
    counts = record.fact("class_counts")
    if isinstance(counts, list):
        return np.asarray(counts, dtype=np.float64)
    target = record.fact("target") or {}
    share, size = target.get("positive_share"), _length(target)
    if share is None or target.get("binary_share") != 1.0 or not size:
        return None
    return np.asarray([size * (1 - share), size * share]).round()


def _equal(table: Floats) -> float:
    """How often two different targets of one row are equal: without bias, however few there are."""
    size = table.sum(1)
    pairs = float((size * (size - 1)).sum())
    return float((table * (table - 1)).sum() / max(pairs, 1.0))


def _length(target: dict[str, object]) -> int:
    """The targets in a batch, where each is one number; else 0."""
    shape = target.get("shape")
    if not isinstance(shape, list) or not shape or math.prod(shape) != shape[0]:
        return 0
    return int(shape[0])


def _comes_again(chosen: list[int]) -> bool:
    """Whether a class comes back after another one, twice or more."""
    changes = [now for before, now in zip([-1, *chosen], chosen, strict=False) if now != before]
    return len(changes) - len(set(changes)) >= 2


def _knows_all(history: History, name: str, limit: Thresholds) -> bool:
    """Whether even the worst of the last steps are far below what a constant answer scores."""
    curve = next((curve for at, curve in history.named_losses() if at == name), None)
    constant = constant_score(history, name)
    if curve is None or constant is None or not len(curve):
        return False
    late = curve.since(history.steps * 3 // 4).value
    late = late[np.isfinite(late)]
    return bool(len(late)) and float(np.quantile(late, 0.97)) < limit.loss * constant


RULE = Rule(
    "unshuffled-data",
    Cause.DATA,
    look,
    reads=(
        *dict.fromkeys((*EVALUATED_READS, *PROGRESS_READS)),
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
