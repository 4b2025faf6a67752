"""Predictions stand beside the targets of other samples or positions.

Cause: `view` or `reshape` where `transpose` or `permute` was meant, in the model or before the
loss; `repeat` of inputs whose targets lie as `repeat_interleave` lays them; one side time first and
the other batch first. In an evaluation: the targets of another split, or in another order than the
predictions (a loader that shuffles). The answers of a teacher that were collected in another order
than the samples are in. Of maps: (width, height) for (height, width), a random flip of the picture
that is not that of its mask.
Evidence: on a copy, one sample was replaced, and the predictions that moved stood beside targets of
several samples; or autograd shows that the prediction beside position t is made of outputs at other
positions; or targets of copies of one sample agree by chance only, and in the other layout they do
agree. Of maps: turned or mirrored, they follow from the pictures far better than as they lie, all
of them or some. Of evaluations: training is learnt, answers are as spread as the targets are, and
fit them no better than those of other samples would. Of a teacher: labels and its answers, in one
loss, name the same class no more often than by chance. Or nearly all answers of an evaluation are
right as soon as each class is given another number. A question where other evaluations of the run
are fine, of few classes (an attack exchanges classes, too), and where nothing but comparisons is
known of a network that is always right: its answers may be labels that are compared with others.
Fix: bring the dimensions into one order before they are laid flat; take inputs and targets of an
evaluation from one place.
Silent: where the layout of the target is not known, where samples depend on each other, and where
whole samples are in another order; and where evaluations are merely worse than training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Examined, History
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.evaluated import EVALUATED_READS, Answers, every_answer
from nethook.doctor.signals.examined import finding_of, first, number, numbers, text

EXAMINED = "predictions line up with targets"
LAYOUT = "input and target lie alike"


class Thresholds(NamedTuple):
    """What may be changed."""

    taught: float = 200  # samples of which labels and a teacher's answers are compared
    named: float = 60  # answers of an evaluation, to tell that classes have other numbers
    renamed: float = 0.85  # score with other numbers of classes, by the score in training
    gained: float = 0.3  # by other numbers of classes
    classes: float = 5  # below which an attack may look like classes with other numbers
    beside: float = 1  # samples beside whose targets the predictions of one may stand


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None or result.outcome != "found":
        layout = first(history, LAYOUT)
        if layout is not None and layout.outcome == "found":
            yield _of_maps(history, layout)
        else:
            yield from _of_a_teacher(history, limit) or _of_evaluations(history, limit)
        return
    if text(result, "laid"):
        yield _of_copies(history, result)
        return
    beside = number(result, "samples_beside", 0)
    if beside > limit.beside:
        sample, samples = number(result, "sample", 0), number(result, "samples", 0)
        said = (
            f"what the model computes from sample {sample:.0f} of {samples:.0f} is compared with "
            f"the targets of {beside:.0f} samples ({_listed(numbers(result, 'beside'))})"
        )
        evidence = {"samples beside one": Evidence(beside, limit.beside)}
    else:
        position, made = number(result, "position", 0), numbers(result, "made_of")
        said = (
            f"the prediction beside the target of position {position:.0f} is made of the model's "
            f"output at {_listed(made)} of {number(result, 'positions', 0):.0f}"
        )
        evidence = {"position": Evidence(position, None)}
    yield finding_of(
        history,
        result,
        "target-misaligned",
        f"{said}: predictions and targets do not line up.",
        "Use transpose or permute, not view or reshape, to bring (batch, class, time) and "
        "(batch, time) into one order: view keeps the order of the numbers in memory.",
        evidence,
    )


def _of_copies(history: History, result: Examined) -> Finding:
    """Copies of samples whose targets lie otherwise."""
    own, other = number(result, "own", 0), number(result, "other", 0)
    chance = number(result, "chance", 0)
    tiles = "one below the other (a, b, a, b)"
    runs = "each beside itself (a, a, b, b)"
    inputs, targets = (tiles, runs) if text(result, "laid") == "tiles" else (runs, tiles)
    return finding_of(
        history,
        result,
        "target-misaligned",
        f"each sample is in the batch {number(result, 'copies', 0):.0f} times, {inputs}, and "
        f"targets of the same sample agree in {own:.0%}, where chance is {chance:.0%}; laid out "
        f"{targets}, {other:.0%} agree: targets belong to other samples.",
        "Lay both out alike: x.repeat_interleave(n, 0) beside targets in runs, x.repeat(n, 1) "
        "beside targets in tiles.",
        {
            "agreement of one sample's targets": Evidence(own, chance),
            "agreement in the other layout": Evidence(other, chance),
        },
    )


def _of_a_teacher(history: History, limit: Thresholds) -> list[Finding]:
    """Labels and a teacher's answers, in one loss, that speak of different samples."""
    told = [(one, one.fact("teacher")) for one in history.records("train") if one.fact("teacher")]
    rows = [float(facts["rows"]) for _, facts in told]
    total = sum(rows)
    if total < limit.taught:
        return []
    agree, chance = (
        sum(float(facts[name]) * count for (_, facts), count in zip(told, rows, strict=True))
        / total
        for name in ("agreement", "chance")
    )
    if not agree < chance + 3 * math.sqrt(max(chance * (1 - chance), 0.01) / total):
        return []
    record = told[0][0]
    return [
        Finding(
            "target-misaligned",
            "error",
            f"the loss{source_line(record.fact('source'))} has labels and the answers of another "
            f"network as targets, and both name the same class for {agree:.0%} of {total:.0f} "
            f"samples, where {chance:.0%} would be chance: the answers belong to other samples.",
            "Compute the teacher's answers for the batch at hand, or keep them by the number of "
            "their sample: a loader that shuffles has another order in every epoch.",
            first_step=record.step,
            last_step=told[-1][0].step,
            evidence={"agreement of both targets": Evidence(agree, chance)},
            lines=file_and_line(record.fact("source")),
        )
    ]


def _of_maps(history: History, result: Examined) -> Finding:
    how, samples = text(result, "how"), number(result, "samples", 0)
    if result.fact("each"):
        said = (
            f"of {samples:.0f} samples, {number(result, 'share', 0):.0%} have targets that fit "
            f"their picture better {how}, and others do not: pictures and targets are mirrored "
            "each by itself"
        )
        fix = "Mirror both with one throw of the coin: one transform for the pair."
    else:
        said = (
            f"{how}, the targets follow from what the pictures show around each place "
            f"({number(result, 'explained', 0):.0%} of their variance), and as they lie they do "
            f"not ({number(result, 'own', 0):.0%}): they do not lie as the pictures do"
        )
        fix = (
            "Bring both into one order: (height, width), not (width, height), and turn or mirror "
            "pictures and targets together."
        )
    evidence = {
        "explained as they lie": Evidence(number(result, "own", 0)),
        "explained otherwise": Evidence(number(result, "explained", 0)),
    }
    return finding_of(history, result, "target-misaligned", f"{said}.", fix, evidence)


def _of_names(history: History, told: Answers, limit: Thresholds) -> Finding | None:
    """Classes that have other numbers in the evaluation than in training."""
    if not told.of_classes or not told.falls or told.rows < limit.named:
        return None
    records = [
        record for record in history.records("eval", told.first.name) if record.fact("renamed")
    ]
    if not records:
        return None
    last = records[-1]
    renamed, pairs = float(last.fact("renamed")), list(last.fact("renaming") or [])
    if not pairs or renamed < limit.renamed * told.trained or renamed - told.score < limit.gained:
        return None
    # An attack makes one class of another, too, and of few classes nearly always the same one.
    few = len(last.fact("class_counts") or ()) < limit.classes
    question = few or told.may_be_labels or _others_fit(history, told)
    meaning = "they are numbered otherwise than in training."
    if question:
        meaning = "are they numbered otherwise than in training?"
    shown = ", ".join(f"{said} for {meant}" for said, meant in pairs[:3])
    source = last.fact("source")
    return Finding(
        "target-misaligned",
        "info" if question else "warning",
        f"in the evaluation{source_line(source)} {told.score:.0%} of {told.rows} answers are "
        f"right, and {renamed:.0%} would be if classes had other numbers ({shown}"
        f"{', …' if len(pairs) > 3 else ''}): {meaning}",
        "Number the classes once, keep the table with the model, and use it for training, "
        "evaluation and prediction; names in sorted order are not numbers in sorted order.",
        first_step=min(told.first.step, max(0, history.steps - 1)),
        last_step=history.steps - 1,
        evidence={
            "score in evaluation": Evidence(told.score),
            "score with other numbers of classes": Evidence(renamed, limit.renamed * told.trained),
            "score in training": Evidence(told.trained),
        },
        lines=file_and_line(source),
    )


def _others_fit(history: History, told: Answers) -> bool:
    """Whether answers fit in another evaluation of the run."""
    return any(
        other is not told and other.trained > 0 and not other.falls
        for other in every_answer(history)
    )


def _of_evaluations(history: History, limit: Thresholds) -> Iterator[Finding]:
    """The first line of evaluations whose answers do not stand beside their targets."""
    for told in every_answer(history):
        found = _of_names(history, told, limit) or _of_order(history, told)
        if found is not None:
            yield found
            return


def _of_order(history: History, told: Answers) -> Finding | None:
    """Answers that are as spread as the targets, and belong to others."""
    if not told.by_chance or told.below_chance or not told.alike or told.unseen:
        return None
    question = told.may_be_labels or _others_fit(history, told)
    if told.of_classes:
        how = (
            f"{told.score:.0%} of {told.rows} answers are right, where {told.chance:.0%} would be "
            f"by chance, and {told.trained:.0%} are in training"
        )
    else:
        how = (
            f"answers and targets have a correlation of {told.score:.2f}, and of "
            f"{told.trained:.2f} in training"
        )
    source = told.first.fact("source")
    return Finding(
        "target-misaligned",
        "info" if question else "warning",
        f"in the evaluation{source_line(source)} {how}, while answers as a whole are as spread as "
        "the targets: these seem to be of another split, or in another order. (If not, the "
        "training data is learnt by heart.)",
        "Take inputs and targets of the evaluation from one place, in one order: no shuffle=True "
        "where predictions are collected and compared later, test inputs with test targets.",
        first_step=min(told.first.step, max(0, history.steps - 1)),
        last_step=history.steps - 1,
        evidence={
            "score in evaluation": Evidence(told.score, told.chance + 3 * told.error),
            "score in training": Evidence(told.trained),
            "difference of answers and targets as a whole": Evidence(told.apart, 0.15 + told.noise),
        },
        lines=file_and_line(source),
    )


def _listed(places: list[int]) -> str:
    shown = [str(place) for place in places[:4]]
    return ", ".join(shown) + (", …" if len(places) > 4 else "") if shown else "other places"


RULE = Rule(
    "target-misaligned",
    Cause.LOSS,
    look,
    reads=(
        *EVALUATED_READS,
        "loss.renamed",
        "loss.renaming",
        "examined.input and target lie alike",
        "examined.input and target lie alike.each",
        "examined.input and target lie alike.explained",
        "examined.input and target lie alike.how",
        "examined.input and target lie alike.lines",
        "examined.input and target lie alike.own",
        "examined.input and target lie alike.samples",
        "examined.input and target lie alike.share",
        "examined.predictions line up with targets",
        "examined.predictions line up with targets.beside",
        "examined.predictions line up with targets.chance",
        "examined.predictions line up with targets.copies",
        "examined.predictions line up with targets.laid",
        "examined.predictions line up with targets.lines",
        "examined.predictions line up with targets.made_of",
        "examined.predictions line up with targets.other",
        "examined.predictions line up with targets.own",
        "examined.predictions line up with targets.position",
        "examined.predictions line up with targets.positions",
        "examined.predictions line up with targets.sample",
        "examined.predictions line up with targets.samples",
        "examined.predictions line up with targets.samples_beside",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
        "loss.teacher",
    ),
    defaults=Thresholds(),
)
