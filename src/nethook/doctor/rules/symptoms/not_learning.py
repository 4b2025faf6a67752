"""The loss does not move, and nothing else explains it.

Cause: labels that do not belong to the inputs, a task that cannot be learnt from them, or a fault
that no other rule knows.
Evidence: the loss stays at what one answer for all inputs would score (the entropy of the targets,
their variance); where that is not known, its slope against its own noise, over the whole run.
Where copies were trained on one batch alone, their losses say where to look first: at the settings,
at the network, or at the data.
Fix: check by hand that inputs and targets belong together; overfit one batch.
Silent: for short runs, where the loss falls late, and where another finding explains it. Where it
is not known what a guess would score, it is a note before `sure` steps: a run may have begun where
another ended. It is a note, too, where the loss ends a little below what one answer would score: a
task may be as noisy as that, and labels that were shuffled apart from their inputs are learnt by
heart just so slowly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.one_batch import ONE_BATCH_READS, OneBatch, one_batch
from nethook.doctor.signals.progress import PROGRESS_READS, Progress, progress


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 60
    fall: float = 0.03  # of the loss, by its start
    sure: float = 400  # steps
    little: float = 0.8  # of what a constant answer scores: above it little was learnt
    long: float = 150  # steps before that is said


LEARNT: Final = 0.3
"""Fall of the loss, by its start, from which on a few samples count as being learnt."""


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    if went is None or history.steps < limit.steps or not went.finite:
        return
    best = (went.start - went.best) / max(abs(went.start), 1e-12)
    moved = max(went.fell, best)
    if not went.learnt_nothing:
        if went.constant is not None and not went.end < limit.little * went.constant:
            yield from _little(history, went, limit)
            return
        if went.constant is not None or went.improves or went.fell > 0.05:
            return
        if moved > limit.fall and went.start - went.best > 2 * went.noise:
            return
    guess = went.constant
    tried = one_batch(history)
    score = f" (one answer for all inputs would score {guess:.3g})" if guess is not None else ""
    yield Finding(
        "not-learning",
        "error" if guess is not None or history.steps >= limit.sure else "info",
        f"over {history.steps} steps the loss went from {went.start:.3g} to {went.end:.3g}{score}: "
        "nothing was learnt, and no other rule says why."
        + ("" if tried is None else f" {tried.words}{_points_to(tried)}"),
        "Check on a few samples that inputs and targets belong together, and that the network can "
        "overfit one batch (nethook.checkup).",
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={
            "fall of the loss": Evidence(moved, limit.fall),
            **({} if tried is None else tried.evidence),
        },
    )


def _points_to(tried: OneBatch) -> str:
    """Where to look first; "" where the numbers do not say."""
    if tried.own_learns:
        return " One batch can be learnt: look at the data first."
    if tried.own_fails and tried.adam_learns:
        return " Look at the optimizer and its settings first."
    if tried.own_fails and tried.adam_fails:
        return " Neither lowers it: look at the network and the loss first."
    return ""


def _little(history: History, went: Progress, limit: Thresholds) -> Iterator[Finding]:
    """A note: the loss is hardly better than one answer for all inputs."""
    constant = went.constant or 0.0
    if history.steps < limit.long:
        return
    yield Finding(
        "not-learning",
        "info",
        f"after {history.steps} steps the loss is {went.end:.3g}, and one answer for all inputs "
        f"would score {constant:.3g}: little was learnt. The task may be that noisy, or the rate "
        "low; if neither is so, inputs and targets may not belong together (shuffled apart), and "
        "are learnt by heart.",
        "Check on a few samples that inputs and targets belong together, and compare with the loss "
        "of samples that were not trained on.",
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={
            "loss, by what a constant answer scores": Evidence(went.end / constant, limit.little)
        },
    )


def of_few_samples(text: str, fall: float, steps: int, *, others_learn: bool) -> Finding:
    """A finding of the pre-flight check: a few samples were not learnt with this optimizer."""
    if others_learn:
        message = f"with the given optimizer the network does not learn a few samples: {text}."
        fix = "Look at its learning rate, its weight decay, and which parameters it has."
    else:
        message = f"the network cannot overfit a few samples: {text}."
        fix = (
            "Look at what the forward does with its input, and whether the loss compares what it "
            "is meant to."
        )
    return Finding(
        "not-learning",
        "warning" if others_learn else "error",
        message,
        fix,
        last_step=steps - 1,
        evidence={"fall of the loss": Evidence(fall, LEARNT)},
    )


RULE = Rule(
    "not-learning",
    Cause.REST,
    look,
    reads=(
        *ONE_BATCH_READS,
        *PROGRESS_READS,
        "scalar.lr",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
