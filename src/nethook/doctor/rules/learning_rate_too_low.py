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

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import STOPPED_READS, fades, stopped_layers
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median, quantile
from nethook.runs.names import GRAD_NORM, UPDATE_RATIO
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    ratio: float = 5e-5  # update by weights
    gradient: float = 1e-6  # norm of the gradient, by that of the weights
    trained: float = 0.5  # first losses, by what the best constant answer would score


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    ratio, norm = history.loop(UPDATE_RATIO), history.loop(GRAD_NORM)
    went = progress(history)
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
    factor = 1e-3 / max(largest, 1e-12)
    yield Finding(
        "learning-rate-too-low",
        "warning",
        f"a step changes the weights by {largest:.1g} of their size (1e-3 is usual), although "
        f"gradients are there (norm {gradient:.3g}); the loss stays at {went.end:.3g}. The "
        f"learning rate is {number(rate)}.",
        f"Raise the learning rate; {number(rate * min(factor, 1e6))} would make steps of a usual "
        "size.",
        first_step=0,
        last_step=history.steps - 1,
        evidence={
            "update by weights": Evidence(largest, limit.ratio),
            "norm of the gradient": Evidence(gradient, limit.gradient),
        },
    )


RULE = Rule(
    "learning-rate-too-low",
    Cause.SETTINGS,
    look,
    reads=(
        *STOPPED_READS,
        *PROGRESS_READS,
        "module.parameters",
        "scalar.lr",
        "series.@loop.forwards.mean",
        "series.@loop.grad_norm.mean",
        "series.@loop.update_ratio.mean",
        "series.grads.rms",
    ),
    defaults=Thresholds(),
)
