"""The signal grows with depth or with steps.

Cause: recurrent weights above one, initial weights that are too large, no clipping.
Evidence: the norm of the gradient beyond its own usual size by orders of magnitude, or its profile
over depth upwards, in a run that does not do its job.
Fix: clipping, another initialisation, a lower rate.
Silent: where the run does its job, and for steps that a loss scaler left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import KEEP_GRADIENT
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import gradient_profile, norm_of_weights, pairs
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import GRAD_NORM, GRAD_NORM_UNCLIPPED
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    growth: float = 100  # largest norm by the median
    profile: float = 1e3  # first layers by last
    size: float = 5  # largest norm by that of the weights


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    norm = history.loop(GRAD_NORM_UNCLIPPED, "max")
    norm = norm if len(norm) else history.loop(GRAD_NORM, "max")
    if (went is not None and went.does_its_job) or len(norm) < 3:
        return
    finite = norm.where(np.isfinite(norm.value) & (norm.value > 0))
    if not len(finite):
        return
    # It may grow to the end, or explode at the start and leave a network that is dead.
    begins = median(finite.value[: max(5, len(finite) // 10)])
    usual = min(begins, median(finite.value))
    peak = float(finite.value.max())
    growth = peak / max(usual, 1e-30)
    sizes = list(pairs(gradient_profile(history, 0, max(3, history.steps // 10))))
    steep = sizes[0][1] / sizes[-1][1] if len(sizes) >= 3 else 0.0
    size = peak / max(norm_of_weights(history), 1e-30)
    huge = size > limit.size
    if not ((growth > limit.growth and huge) or (steep > limit.profile and huge)):
        return
    over = finite.where(finite.value > max(10 * usual, 0.1 * peak if begins > usual else 0.0))
    first = int(over.step[0]) if len(over) else int(finite.step[0])
    yield Finding(
        "exploding-gradient",
        "error",
        f"the norm of the gradient is {number(usual)} as a rule and was {number(peak)} at step "
        f"{int(finite.step[np.argmax(finite.value)])}: {number(size)} times that of all weights.",
        "Clip it (torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)), start with smaller "
        "weights (nethook.init), or lower the learning rate.",
        sites=(sizes[0][0],) if steep > limit.profile else (),
        first_step=first,
        last_step=int(finite.step[-1]),
        evidence={
            "largest norm by the usual one": Evidence(growth, limit.growth),
            "first layer by last": Evidence(steep, limit.profile),
            "largest norm by that of the weights": Evidence(size, limit.size),
        },
    )


def before_training(first: str, last: str, ratio: float, layers: int) -> Finding:
    """A finding of the pre-flight check: `ratio` is the first layer's gradient by the last's."""
    return Finding(
        "exploding-gradient",
        "warning",
        f"the gradient is {number(ratio)} times larger at `{first}` than at `{last}`, over "
        f"{layers} layers.",
        KEEP_GRADIENT,
        sites=(first,),
        evidence={"first layer by last": Evidence(ratio, Thresholds().profile)},
    )


RULE = Rule(
    "exploding-gradient",
    Cause.SYMPTOM,
    look,
    reads=(
        *PROGRESS_READS,
        "module.activation",
        "module.first_call",
        "module.leaf",
        "module.parameters",
        "parameter.elements",
        "series.@loop.forwards.mean",
        "series.@loop.grad_norm.max",
        "series.@loop.grad_norm_unclipped.max",
        "series.grads.rms",
        "series.params.rms",
    ),
    defaults=Thresholds(),
)
