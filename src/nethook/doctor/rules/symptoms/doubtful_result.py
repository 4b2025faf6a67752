"""Nothing is wrong that any rule knows, and what the run shows is no sign that it does its job.

Cause: a fault that no other rule knows; or a task that is as hard as that.
Evidence: one of these. In evaluations, answers fit their targets no better than by chance, or the
loss is worse than that of one answer for all inputs, while training is learnt; on a copy with the
trained weights, a sample's answer is worth no more than the answer to another sample; the loss fell
by little, and what a guess would score is not known. Or no loss of the run measures progress: those
that play against each other, or that of a policy.
Fix: look at a few samples by hand: input, target and answer.
Silent: where any of it shows that something was learnt, and where another finding explains the run.
It is a note, with which a run counts as not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.evaluated import EVALUATED_READS, answers
from nethook.doctor.signals.examined import number
from nethook.doctor.signals.progress import ENOUGH, PROGRESS_READS, Progress, progress
from nethook.doctor.signals.quantiles import median
from nethook.text.numbers import ascii_number as shown

EXAMINED = "answers fit their samples"


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 60
    fit: float = 0.9  # loss of answers to their own samples, by that of answers to others
    worse: float = 1.1  # loss of evaluations, by that of one answer for all inputs
    fall: float = 0.15  # of a loss of which nothing else is known


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    if history.steps < limit.steps:
        return
    went = progress(history)
    told = (
        _of_evaluations(history, went, limit)
        or _of_samples(history, limit)
        or _of_little(history, went, limit)
        or _of_no_measure(history, went)
    )
    if told is None:
        return
    message, evidence = told
    yield Finding(
        "doubtful-result",
        "info",
        f"{message}; no other rule says why.",
        "Look at a few samples by hand: input, target, and what the network answers.",
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence=evidence,
    )


_Told = tuple[str, dict[str, Evidence]]


def _of_evaluations(history: History, went: Progress | None, limit: Thresholds) -> _Told | None:
    told = answers(history)
    if told is not None and told.by_chance:
        return (
            (
                f"in evaluation answers fit their targets no better than by chance (score "
                f"{told.score:.2f}; {told.trained:.2f} in training)"
            ),
            {"score in evaluation": Evidence(told.score, told.chance + 3 * told.error)},
        )
    if went is None or went.constant is None or not went.does_its_job:
        return None
    kinds = {record.fact("kind") for record in history.records("train")}
    curves = [
        curve
        for name, curve in history.named_losses("eval")
        if {record.fact("kind") for record in history.records("eval", name)} == kinds
    ]
    if len(curves) != 1:
        return None
    late = median(curves[0].value[-3:])
    if not late > limit.worse * went.constant:
        return None
    return (
        (
            f"the loss is {shown(went.end)} in training, and {shown(late)} in evaluation, where "
            f"one answer for all inputs would score {shown(went.constant)}"
        ),
        {
            "loss of evaluations, by a constant answer's": Evidence(
                late / went.constant, limit.worse
            )
        },
    )


def _of_samples(history: History, limit: Thresholds) -> _Told | None:
    results = [result for result in history.examined(EXAMINED) if result.outcome == "fine"]
    for result in results:
        own, others = number(result, "own"), number(result, "others")
        if not (others > 0 and own > limit.fit * others):
            return None  # something was learnt of one loss
    if not results:
        return None
    own, others = number(results[0], "own"), number(results[0], "others")
    return (
        (
            f"with the trained weights, the loss of a batch is {shown(own)}, and {shown(others)} "
            "with each sample's answer in the place of another's: little of what was learnt "
            "depends on the sample"
        ),
        {"loss by that with the answers of others": Evidence(own / others, limit.fit)},
    )


def _of_little(history: History, went: Progress | None, limit: Thresholds) -> _Told | None:
    if went is None or not went.finite or went.constant is not None:
        return None
    if went.start <= 0 or went.fell >= limit.fall or history.examined(EXAMINED):
        return None
    return (
        (
            f"over {history.steps} steps the loss went from {shown(went.start)} to "
            f"{shown(went.end)}: little was learnt"
        ),
        {"fall of the loss": Evidence(went.fell, limit.fall)},
    )


def _of_no_measure(history: History, went: Progress | None) -> _Told | None:
    """Losses that are there and say nothing; answers that fit their samples are a sign."""
    losses = sum(len(curve) >= ENOUGH for curve in history.losses())
    if went is not None or not losses or answers(history) is not None:
        return None
    if any(result.outcome == "fine" for result in history.examined(EXAMINED)):
        return None
    what = (
        f"its {losses} losses are trained at once, and may play against each other"
        if losses > 1
        else "its loss has no floor and no course, as that of a policy"
    )
    return (
        f"whether the run learns cannot be told from its losses: {what}. Look at its score",
        {"losses": Evidence(losses)},
    )


RULE = Rule(
    "doubtful-result",
    Cause.REST,
    look,
    reads=(
        *dict.fromkeys((*EVALUATED_READS, *PROGRESS_READS)),
        "examined.answers fit their samples",
        "examined.answers fit their samples.others",
        "examined.answers fit their samples.own",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
