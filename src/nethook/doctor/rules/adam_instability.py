"""Adam divides by a second moment that is too small.

Cause: a tiny `eps`, a short memory (`beta2`), or no warm-up: after a quiet stretch a usual gradient
makes a huge step.
Evidence: updates that spike while gradients do not, and an optimizer that keeps second moments.
Fix: a larger `eps`, a longer memory, warm-up.
Silent: where the run does its job, and for spikes that the gradients have, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import optimizer_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import GRAD_NORM, SECOND_MOMENT, UPDATE_RATIO


class Thresholds(NamedTuple):
    """What may be changed."""

    spike: float = 8  # update by its median, over gradient by its median
    spikes: float = 3


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    if went is None or went.does_its_job or not _is_adaptive(history):
        return
    ratio, norm = history.loop(UPDATE_RATIO), history.loop(GRAD_NORM)
    shared, ours, theirs = np.intersect1d(ratio.step, norm.step, return_indices=True)
    if len(shared) < 20:
        return
    update, gradient = ratio.value[ours], norm.value[theirs]
    usual = median(update), median(gradient)
    if not (usual[0] > 0 and usual[1] > 0):
        return
    # A gradient near zero must not make a spike of an update that momentum alone has made.
    apart = (update / usual[0]) / np.maximum(gradient / usual[1], 0.1)
    late = np.arange(len(apart)) >= 5  # the first steps of Adam are large by design
    spikes = np.flatnonzero((apart >= limit.spike) & late)
    if len(spikes) < limit.spikes:
        return
    yield Finding(
        "adam-instability",
        "warning",
        f"{len(spikes)} updates were up to {float(apart[spikes].max()):.0f} times what their "
        "gradients explain: the second moment that Adam divides by is too small.",
        "Use a larger eps (1e-8 or 1e-6), betas=(0.9, 0.999), and a warm-up over some hundred "
        "steps.",
        first_step=int(shared[spikes[0]]),
        last_step=int(shared[spikes[-1]]),
        evidence={
            "update against gradient": Evidence(float(apart[spikes].max()), limit.spike),
            "spikes": Evidence(len(spikes), limit.spikes),
        },
        lines=optimizer_lines(history),
    )


def _is_adaptive(history: History) -> bool:
    return any(history.has(parameter.address, SECOND_MOMENT) for parameter in history.parameters)


RULE = Rule(
    "adam-instability",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "event.groups",
        "series.@loop.forwards.mean",
        "series.@loop.grad_norm.mean",
        "series.@loop.update_ratio.mean",
    ),
    defaults=Thresholds(),
)
