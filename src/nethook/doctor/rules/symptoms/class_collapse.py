"""One answer for every input.

Cause: a network that has given up on telling its inputs apart: classes of very different frequency,
unbalanced weights of classes, too large steps, dead layers.
Evidence: how different the predictions are, against how different the targets are, in most of the
later losses; of rare classes, that not one of them is predicted although many were wanted.
Fix: balance the classes; look at what else was found.
Silent: where targets are of one class themselves, in the first steps, where the run improves, and
where rare classes are predicted now and then. Where they are not, and the loss does fall below what
one answer would score, it is a note: rare events may not be foreseeable better than that. Of masks,
in which every sample has both kinds of pixels, it is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Floats, History, LossFacts
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, Progress, progress
from nethook.doctor.signals.quantiles import median


class Thresholds(NamedTuple):
    """What may be changed."""

    entropy: float = 0.15  # of predictions, by that of targets
    records: float = 3
    steps: float = 40  # before which one answer for all is how a network begins
    accuracy: float = 0.5  # below which a falling loss with weights of classes is not believed
    common: float = 0.8  # share of the most frequent class, from which on the others are rare
    rare: float = 6  # targets of rare classes that were wanted
    predicted: float = 0.02  # how many of so many were predicted instead


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    found = list(_one_answer(history, limit))
    yield from found or _rare_classes(history, limit)


def _one_answer(history: History, limit: Thresholds) -> Iterator[Finding]:
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
    # The first of those that lie together up to the end, not one in which a network just began.
    onset = later[0].step
    for record in reversed(records):
        one = _ratio(record)
        if one is not None and one > limit.entropy:
            break
        onset = min(onset, record.step)
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


def _rare_classes(history: History, limit: Thresholds) -> Iterator[Finding]:
    """Rare classes that are never predicted."""
    records = [record for record in history.records("train") if _answers(record) is not None]
    late = _with_rare(records, history, limit)
    if len(late) < limit.records or history.steps < limit.steps:
        return
    if len({record.name for record in late}) != 1:  # critics, and networks that play
        return
    answers = [answer for record in late if (answer := _answers(record)) is not None]
    width = min(len(targets) for targets, _ in answers)
    if any(len(targets) != width for targets, _ in answers):
        return
    wanted = np.sum([targets for targets, _ in answers], axis=0)
    given = np.sum([predicted for _, predicted in answers], axis=0)
    common, total = int(np.argmax(wanted)), float(wanted.sum())
    rare = total - float(wanted[common])
    predicted = float(given.sum() - given[common])
    if wanted[common] < limit.common * total or rare < limit.rare:
        return
    if predicted > limit.predicted * rare:
        return
    went = progress(history)
    nothing = went is not None and went.learnt_nothing
    shape = (late[0].fact("target") or {}).get("shape") or []
    masks = len(shape) >= 3
    first = records[0]
    where = source_line(first.fact("source"))
    yield Finding(
        "class-collapse",
        "warning" if nothing or masks else "info",
        f"{rare / total:.2g} of the targets of the loss{where} are not of class {common}, and the "
        f"network has predicted {predicted:.0f} of {rare:.0f} such since step {late[0].step}: "
        f"it answers {common} for nearly every {'element' if masks else 'input'}.",
        "If the rare classes matter, weigh them: pos_weight or weight of the loss, a sampler that "
        "draws them more often, or a loss of overlap (Dice) for masks.",
        first_step=late[0].step,
        last_step=late[-1].step,
        evidence={
            "share of the frequent class": Evidence(float(wanted[common]) / total, limit.common),
            "rare targets": Evidence(rare, limit.rare),
            "rare answers": Evidence(predicted, limit.predicted * rare),
        },
        lines=file_and_line(first.fact("source")),
    )


def _with_rare(records: list[LossFacts], history: History, limit: Thresholds) -> list[LossFacts]:
    """Those of the second half; from the first steps on where that shows too few rare targets.

    Records lie further and further apart, and a small batch has hardly any of a rare class.
    """
    late = [record for record in records if record.step >= history.steps // 2]
    answers = [answer for record in late if (answer := _answers(record)) is not None]
    rare = sum(float(wanted.sum() - wanted.max()) for wanted, _ in answers)
    if len(late) >= limit.records and rare >= limit.rare:
        return late
    return [record for record in records if record.step >= limit.steps]


def _answers(record: LossFacts) -> tuple[Floats, Floats] | None:
    """How often each class was wanted, and predicted; None where that is not known."""
    wanted, given = record.fact("class_counts"), record.fact("argmax_counts")
    if wanted and given and len(wanted) == len(given):
        return _array(wanted), _array(given)
    target, prediction = record.fact("target") or {}, record.fact("prediction") or {}
    yes, said = target.get("positive_share"), prediction.get("positive_share")
    count = record.fact("elements")
    if yes is None or said is None or count is None or target.get("binary_share") != 1.0:
        return None
    return np.asarray([1 - yes, yes]) * count, np.asarray([1 - said, said]) * count


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
        "loss.elements",
        "loss.prediction",
        "loss.source",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
