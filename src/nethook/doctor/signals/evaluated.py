"""How answers and targets go together in evaluations, against training.

A network that has learnt its training data answers to unseen samples better than by chance. Where
it does not, its answers say why: as spread as the targets are, they belong to other samples; where
targets are of classes that training never had, the split was made along the order of the data.
Evaluations are seen by their losses, and by answers that are compared with labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from nethook.doctor.history import Floats, History, LossFacts
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import EQUAL

EVALUATED_READS: Final = (
    "loss.accuracy",
    "loss.argmax_counts",
    "loss.class_counts",
    "loss.correlation",
    "loss.kind",
    "loss.prediction",
    "loss.source",
    "loss.target",
)
"""The fields that `answers` reads."""

FEWEST: Final = 24
"""Targets of a record below which it says nothing."""
_CERTAIN: Final = 0.05
_CLASSES: Final = ("cross_entropy", "nll")
_OF_TWO: Final = ("bce", "bce_with_logits")
_NUMBERS: Final = ("mse", "l1", "smooth_l1", "huber")


class Answers(NamedTuple):
    """What the last evaluations show, beside the last records of training.

    `score` is the share of right answers, or the correlation of numbers with their targets.
    """

    first: LossFacts  # the first record of evaluations that is like this
    score: float
    chance: (
        float  # what the score would be if answers and targets had nothing to do with each other
    )
    error: float  # how well the score is known
    trained: float  # the score in training
    apart: float  # how different answers and targets are as a whole: 0 for the same distribution
    noise: float  # what `apart` would be by chance
    unseen: float  # share of targets of classes that training never had
    rows: int
    of_classes: bool
    compared: int = 0  # answers in all evaluations, where they are known by their numbers alone

    @property
    def may_be_labels(self) -> bool:
        """Whether what looks like answers may be labels: a network that is always right."""
        return self.compared > 0 and self.trained**self.compared > _CERTAIN

    @property
    def falls(self) -> bool:
        """Whether answers fit far worse than in training."""
        return self.score + 3 * self.error < 0.75 * self.trained

    @property
    def by_chance(self) -> bool:
        """Whether answers fit their targets no better than those of other samples would."""
        learnt = self.trained > max(0.6, self.chance + 0.3)
        return learnt and self.score < min(self.chance + 3 * self.error, 0.6 * self.trained)

    @property
    def below_chance(self) -> bool:
        """Whether answers avoid their targets: under an attack, or with classes swapped."""
        return self.score < self.chance - 3 * self.error

    @property
    def alike(self) -> bool:
        """Whether answers as a whole are as spread as the targets are."""
        return self.apart < 0.15 + self.noise


def answers(history: History) -> Answers | None:
    """Of the loss that most evaluations were seen of; None where too little is known."""
    return next(iter(every_answer(history)), None)


def every_answer(history: History) -> tuple[Answers, ...]:
    """Of each line that evaluates, the one with most evaluations first."""
    return history.once("answers", _answers)


def _answers(history: History) -> tuple[Answers, ...]:
    records = history.records("eval")
    names = dict.fromkeys(record.name for record in records)
    of_names = [[record for record in records if record.name == name] for name in names]
    of_names.sort(key=len, reverse=True)
    told = (_of_classes(history, kept) or _of_numbers(history, kept) for kept in of_names)
    return tuple(one for one in told if one is not None)


def _of_classes(history: History, records: Sequence[LossFacts]) -> Answers | None:
    late = [record for record in _late(records) if _is_of_classes(record, (*_CLASSES, EQUAL))]
    if not late:
        return None
    wanted, said = _sum(late, "class_counts"), _sum(late, "argmax_counts")
    if wanted is None or said is None or len(wanted) != len(said):
        return None
    trained = [record for record in history.records("train") if _is_of_classes(record, _CLASSES)]
    known = _sum(trained, "class_counts") if trained else None
    if len(wanted) == 2 and not trained:  # of two classes, that have one output
        trained = [record for record in history.records("train") if _is_of_two(record)]
        known = np.ones(2)
    rows = int(min(np.sum(record.fact("class_counts")) for record in late))
    if len(trained) < 3 or known is None or rows < FEWEST or len(known) != len(wanted):
        return None
    shares, spoken = wanted / wanted.sum(), said / max(said.sum(), 1)
    chance = float((shares * spoken).sum())
    error = math.sqrt(max(chance * (1 - chance), 0.01) / rows)
    return Answers(
        _since(records, "accuracy", chance + 3 * error) or late[0],
        median([float(record.fact("accuracy")) for record in late]),
        chance,
        error,
        median([float(record.fact("accuracy")) for record in _late(trained)]),
        0.5 * float(np.abs(shares - spoken).sum()),
        math.sqrt(int((wanted + said > 0).sum()) / (math.pi * rows)),
        _unseen(wanted, known),
        rows,
        of_classes=True,
        compared=rows * len(records) if late[0].fact("kind") == EQUAL else 0,
    )


def _of_numbers(history: History, records: Sequence[LossFacts]) -> Answers | None:
    late = [record for record in _late(records) if _is_of_numbers(record)]
    trained = [record for record in history.records("train") if _is_of_numbers(record)]
    if not late or len(trained) < 3:
        return None
    rows = min(int(math.prod((record.fact("target") or {})["shape"])) for record in late)
    if rows < FEWEST:
        return None
    target, said = (late[-1].fact(name) or {} for name in ("target", "prediction"))
    wide = max(float(target["std"]), 1e-12)
    ratio = max(float(said["std"]), 1e-12) / wide
    offset = abs(float(said["mean"]) - float(target["mean"])) / wide
    return Answers(
        _since(records, "correlation", 3 / math.sqrt(rows)) or late[0],
        median([float(record.fact("correlation")) for record in late]),
        0.0,
        1 / math.sqrt(rows),
        median([float(record.fact("correlation")) for record in _late(trained)]),
        max(offset / 3, abs(math.log2(ratio)) / 6),
        0.0,
        0.0,
        rows,
        of_classes=False,
    )


def _since(records: Sequence[LossFacts], name: str, below: float) -> LossFacts | None:
    """The first record from which on a score is below a limit, to the end."""
    first = None
    for record in reversed(records):
        score = record.fact(name)
        if score is None or float(score) >= below:
            break
        first = record
    return first


def _late(records: Sequence[LossFacts]) -> Sequence[LossFacts]:
    return records[-max(1, min(5, len(records) // 3)) :]


def _is_of_two(record: LossFacts) -> bool:
    return record.fact("kind") in _OF_TWO and record.fact("accuracy") is not None


def _is_of_classes(record: LossFacts, kinds: Sequence[str]) -> bool:
    return (
        record.fact("kind") in kinds
        and isinstance(record.fact("class_counts"), list)
        and isinstance(record.fact("argmax_counts"), list)
        and record.fact("accuracy") is not None
    )


def _is_of_numbers(record: LossFacts) -> bool:
    both = [record.fact(name) or {} for name in ("target", "prediction")]
    return (
        record.fact("kind") in _NUMBERS
        and record.fact("correlation") is not None
        and all(one.get("std") is not None and one.get("mean") is not None for one in both)
        and bool(both[0].get("shape"))
    )


def _sum(records: Sequence[LossFacts], name: str) -> Floats | None:
    counts = [np.asarray(record.fact(name), np.float64) for record in records]
    if len({len(one) for one in counts}) != 1:
        return None
    total: Floats = np.sum(counts, axis=0)
    return total


def _unseen(wanted: Floats, known: Floats) -> float:
    """Share of targets whose class training never had, of those that it should have shown."""
    shares = wanted / wanted.sum()
    expected = shares * known.sum()  # if both were drawn from the same classes
    never = (known == 0) & (expected > 5)
    return float(shares[never].sum())
