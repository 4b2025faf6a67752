"""Steps are too small.

Cause: a learning rate at which the run would take for ever.
Evidence: the true update by the weights is tiny while gradients are there, and the loss hardly
moves.
Fix: a higher rate.
Silent: where the loss falls (fine-tuning at a tiny rate), where it begins far below what a guess
would score (a network that was trained before), during warm-up, at the end of a schedule, and where
gradients vanish or layers are dead: then the rate is not the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import optimizer_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import STOPPED_READS, fades, stopped_layers
from nethook.doctor.signals.one_batch import ONE_BATCH_READS, one_batch
from nethook.doctor.signals.onset import first_step_of
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median, quantile
from nethook.runs.names import GRAD_NORM, UPDATE_RATIO
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    ratio: float = 5e-5  # update by weights
    gradient: float = 1e-6  # norm of the gradient, by that of the weights
    trained: float = 0.5  # first losses, by what the best constant answer would score
    rises: float = 5  # changes of a rate that is still rising when the run ends
    steps: float = 60  # that such a run must have


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    ratio, norm = history.loop(UPDATE_RATIO), history.loop(GRAD_NORM)
    went = progress(history)
    if went is not None and went.finite and not (went.does_its_job or went.diverges):
        warming = _warming(history, limit)
        if warming is not None:
            yield warming
            return
    if went is None or went.improves or not went.finite or len(ratio) < 10 or not len(norm):
        return
    if went.constant is not None and went.early < limit.trained * went.constant:
        return  # it could do its job before this run
    largest = quantile(ratio.value, 0.95)
    gradient = median(norm.value)
    if largest >= limit.ratio or gradient < limit.gradient:
        return
    if stopped_layers(history) or fades(history):
        return  # gradients do not arrive: the rate is not the cause
    rate = history.largest_rate()
    tried = one_batch(history)
    shown = tried if tried is not None and tried.own_fails and tried.adam_learns else None
    factor = 1e-3 / max(largest, 1e-12)
    yield Finding(
        "learning-rate-too-low",
        "warning",
        f"a step changes the weights by {largest:.1g} of their size (1e-3 is usual), although "
        f"gradients are there (norm {gradient:.3g}); the loss stays at {went.end:.3g}. The "
        f"learning rate is {number(rate)}." + ("" if shown is None else f" {shown.words}"),
        f"Raise the learning rate; {number(rate * min(factor, 1e6))} would make steps of a usual "
        "size.",
        first_step=first_step_of(ratio),
        last_step=history.steps - 1,
        evidence={
            "update by weights": Evidence(largest, limit.ratio),
            "norm of the gradient": Evidence(gradient, limit.gradient),
            **({} if shown is None else shown.evidence),
        },
        lines=optimizer_lines(history),
    )


def _warming(history: History, limit: Thresholds) -> Finding | None:
    """A warm-up that the run did not reach the end of."""
    if history.steps < limit.steps:
        return None
    for whole in history.rates().values():
        curve = whole.where(np.diff(whole.value, prepend=np.nan) != 0)
        rises = len(curve) - 1
        if rises < limit.rises or not (np.diff(curve.value) > 0).all():
            continue
        # Its last change is as late as the others are apart; a search for a rate spans much more.
        late = history.steps - int(curve.step[-1]) <= 2 * history.steps / rises
        first, last = float(curve.value[0]), float(curve.value[-1])
        if not late or (first > 0 and last > 1e4 * first):
            continue
        return Finding(
            "learning-rate-too-low",
            "warning",
            f"the learning rate was still rising when the run ended: from {number(first)} to "
            f"{number(last)} in {rises} changes over {history.steps} steps, and little was learnt.",
            "Make the warm-up shorter than the run. If it counts batches, call scheduler.step() "
            "after each of them.",
            first_step=int(curve.step[0]),
            last_step=history.steps - 1,
            evidence={"changes, all upward": Evidence(rises, limit.rises)},
            lines=optimizer_lines(history),
        )
    return None


RULE = Rule(
    "learning-rate-too-low",
    Cause.SETTINGS,
    look,
    reads=(
        *STOPPED_READS,
        *ONE_BATCH_READS,
        *PROGRESS_READS,
        "event.groups",
        "module.parameters",
        "scalar.lr",
        "series.@loop.forwards.mean",
        "series.@loop.grad_norm.mean",
        "series.@loop.update_ratio.mean",
        "series.grads.rms",
    ),
    defaults=Thresholds(),
)
