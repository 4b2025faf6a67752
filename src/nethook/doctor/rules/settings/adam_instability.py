"""Adam divides by a second moment that is too small.

Cause: a tiny `eps`, a short memory (`beta2`), or no warm-up: after a quiet stretch a usual gradient
makes a huge step. Or weights in float16: the usual `eps` of 1e-8 is zero in that type, and so is
the square of a small gradient; the step divides by zero.
Evidence: updates that spike while gradients do not, and an optimizer that keeps second moments. A
note where the loss of one batch, the same in every step, rises far above its least value. Of
float16: the optimizer made a NaN or an infinity of finite gradients, in a parameter of that type
whose group has an `eps` below half of its least number.
Fix: a larger `eps`, a longer memory, warm-up; weights in float32, with autocast for speed.
Silent: where the run does its job, and for spikes that the gradients have, too; for float16 weights
that stay finite, and for bfloat16, which has numbers as small as float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import optimizer_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, Progress, longest_loss, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import (
    GRAD_NORM,
    GROUPS,
    MADE_BY_OPTIMIZER,
    NON_FINITE,
    REPEATED,
    SECOND_MOMENT,
    UPDATE_RATIO,
)
from nethook.text.numbers import ascii_number


class Thresholds(NamedTuple):
    """What may be changed."""

    spike: float = 8  # update by its median, over gradient by its median
    spikes: float = 3
    quiet: float = 1000  # steps on one batch before a loss that rises again is spoken of
    leaves: float = 1e4  # loss by the least that it was
    eps: float = 2.0**-25  # half of the least number of float16: what is not above it becomes zero


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    lost = _lost_epsilon(history, limit)
    if lost is not None:
        yield lost
        return
    went = progress(history)
    if went is not None and went.does_its_job and _is_adaptive(history):
        yield from _leaves_its_minimum(history, went, limit)
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


def _leaves_its_minimum(history: History, went: Progress, limit: Thresholds) -> Iterator[Finding]:
    """A note: of one batch that never changes, the loss rises from its least value, many times."""
    repeated, named = history.batch(REPEATED), longest_loss(history)
    if named is None or not len(repeated) or repeated.value.min() < 1:
        return
    value = named[1].value[np.isfinite(named[1].value)]
    if len(value) < limit.quiet or not went.best > 0:
        return
    least = np.minimum.accumulate(value)
    far = (value > limit.leaves * least) & (np.arange(len(value)) >= len(value) // 2)
    leaps = np.flatnonzero(far[1:] & ~far[:-1])
    if not far.any() or not value[far].max() > limit.leaves * least[-1] or len(leaps) < 1:
        return
    at = int(named[1].step[np.flatnonzero(far)[0]])
    yield Finding(
        "adam-instability",
        "info",
        f"every step has the same batch, and the loss, which was down at {least[-1]:.2g}, is up at "
        f"{float(value[far].max()):.2g} again since step {at}: near a minimum gradients "
        "and their second moment vanish, and what is left of them makes steps as large as before.",
        "Stop at the minimum, let the rate fall towards the end, or use a larger eps (1e-6) or "
        "amsgrad=True.",
        first_step=at,
        last_step=int(named[1].step[-1]),
        evidence={
            "loss by its least value": Evidence(
                float(value[far].max() / max(least[-1], 1e-300)), limit.leaves
            )
        },
        lines=optimizer_lines(history),
    )


def _lost_epsilon(history: History, limit: Thresholds) -> Finding | None:
    """The optimizer divided by zero, for its `eps` is zero in the type of the weights."""
    for event in history.events(NON_FINITE)[:1]:
        site = event.address or str(event.data.get("site") or "")
        found = [one for one in history.parameters if one.address == site]
        if MADE_BY_OPTIMIZER not in str(event.data.get("reason") or event.message) or not found:
            return None
        eps, line = _epsilon(history, found[0])
        if found[0].fact("dtype") != "float16" or eps is None or not eps <= limit.eps:
            return None
        return Finding(
            "adam-instability",
            "error",
            f"the weights are float16, in which eps={ascii_number(eps)} of the optimizer is zero: "
            f"where the square of a gradient is zero in float16, too, the step divides by zero. "
            f"`{site}` is not finite since step {event.step}, although its gradients were.",
            "Keep the weights in float32 and use torch.autocast; if they must be float16, give the "
            "optimizer eps=1e-4.",
            sites=(site,),
            first_step=event.step,
            last_step=max(history.steps - 1, event.step),
            evidence={"eps": Evidence(eps, limit.eps)},
            lines=(line,) if line else (),
        )
    return None


def _epsilon(history: History, parameter: SiteFacts) -> tuple[float | None, str]:
    """The `eps` that an optimizer has for a parameter, and the line that made the optimizer."""
    held = [tuple(pair) for pair in parameter.fact("groups", [])]
    for event in history.events(GROUPS):
        for place, group in enumerate(event.data.get("groups") or ()):
            if (event.data.get("optimizer"), place) in held and isinstance(group, Mapping):
                eps = group.get("eps")
                if isinstance(eps, int | float):
                    return float(eps), str(event.data.get("line") or "")
    return None, ""


def _is_adaptive(history: History) -> bool:
    return any(history.has(parameter.address, SECOND_MOMENT) for parameter in history.parameters)


RULE = Rule(
    "adam-instability",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "event.groups",
        "event.non-finite",
        "parameter.dtype",
        "parameter.groups",
        "series.@batch.repeated.mean",
        "series.@loop.forwards.mean",
        "series.@loop.grad_norm.mean",
        "series.@loop.update_ratio.mean",
    ),
    defaults=Thresholds(),
)
