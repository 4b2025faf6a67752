"""Steps are too small.

Cause: a learning rate at which the run would take for ever. Or a scheduler makes it so: the lambda
of a `LambdaLR` returns the rate itself, which is multiplied by the rate; or a `OneCycleLR` laid out
in batches is stepped once an epoch, and never leaves its first slope.
Evidence: the true update by the weights is tiny while gradients are there, and the loss hardly
moves. Or it falls, little is learnt, and a copy learns one batch with larger steps and not with
these, or each step of plain gradient descent goes on in the direction of the one before. Of a
lambda: the highest rate of the whole run is the square of the one that the optimizer was made with;
a note where the run does its job. Of one cycle: the optimizer made as many steps as were planned,
the scheduler a small part of them, and the rate stayed below half of its `max_lr`.
Fix: a higher rate; a lambda that returns a factor; `scheduler.step()` after each batch.
Silent: where the loss falls (fine-tuning at a tiny rate), where it begins far below what a guess
would score (a network that was trained before), where it ends far above its start, during warm-up,
at the end of a schedule, and where gradients vanish or layers are dead: then the rate is not the
cause.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import call_lines, optimizer_lines, rate_in_words, scheduler_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import STOPPED_READS, fades, stopped_layers
from nethook.doctor.signals.one_batch import ONE_BATCH_READS, one_batch
from nethook.doctor.signals.onset import first_step_of
from nethook.doctor.signals.progress import PROGRESS_READS, Progress, progress
from nethook.doctor.signals.quantiles import median, quantile
from nethook.runs.names import (
    GRAD_NORM,
    GROUPS,
    OPTIMIZER_STEPS,
    SCHEDULES,
    SECOND_MOMENT,
    UPDATE_COSINE,
    UPDATE_RATIO,
)
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    ratio: float = 5e-5  # update by weights
    proven: float = 10  # times that, where a copy learns one batch with larger steps only
    straight: float = 0.9  # cosine of successive updates of plain gradient descent
    gradient: float = 1e-6  # norm of the gradient, by that of the weights
    trained: float = 0.5  # first losses, by what the best constant answer would score
    rises: float = 5  # changes of a rate that is still rising when the run ends
    steps: float = 60  # that such a run must have
    turned: float = 0.25  # steps of a cycle that the scheduler made, by those that were planned
    reached: float = 0.5  # of the highest rate of a cycle


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    ratio, norm = history.loop(UPDATE_RATIO), history.loop(GRAD_NORM)
    went = progress(history)
    scheduled = _unturned(history, limit) or _squared(history, limit, went)
    if scheduled is not None:
        yield scheduled
        return
    if went is not None and went.finite and not (went.does_its_job or went.diverges):
        warming = _warming(history, limit)
        if warming is not None:
            yield warming
            return
    tried = one_batch(history)
    shown = tried if tried is not None and tried.own_fails and tried.adam_learns else None
    if went is None or not went.finite or len(ratio) < 10 or not len(norm):
        return
    if went.diverges:
        return  # steps that are tiny beside weights that have grown beyond measure
    straight = _straight(history, limit)
    if went.improves and (went.does_its_job or went.constant is None):
        return
    if went.improves and shown is None and straight is None:
        return
    if went.constant is not None and went.early < limit.trained * went.constant:
        return  # it could do its job before this run
    late = ratio.value[len(ratio) // 2 :]
    largest = quantile(ratio.value if straight is None else late, 0.95)
    gradient = median(norm.value)
    proven = shown is not None or straight is not None
    if largest >= limit.ratio * (limit.proven if proven else 1) or gradient < limit.gradient:
        return
    if stopped_layers(history) or fades(history):
        return  # gradients do not arrive: the rate is not the cause
    rate = history.largest_rate()
    factor = min(1e-3 / max(largest, 1e-12), 1e6)
    more = (
        number(rate * factor)
        if math.isfinite(rate)
        else f"{number(float(f'{factor:.1g}'))} times as much"
    )
    yield Finding(
        "learning-rate-too-low",
        "warning",
        f"a step changes the weights by {largest:.1g} of their size (1e-3 is usual), although "
        f"gradients are there (norm {gradient:.3g}); the loss stays at {went.end:.3g}."
        f"{rate_in_words(rate)}"
        + ("" if straight is None else f"{_STRAIGHT} (cosine {straight:.3g}).")
        + ("" if shown is None else f" {shown.words}"),
        f"Raise the learning rate; {more} would make steps of a usual size.",
        first_step=first_step_of(ratio),
        last_step=history.steps - 1,
        evidence={
            "update by weights": Evidence(largest, limit.ratio),
            "norm of the gradient": Evidence(gradient, limit.gradient),
            **(
                {}
                if straight is None
                else {"cosine of updates": Evidence(straight, limit.straight)}
            ),
            **({} if shown is None else shown.evidence),
        },
        lines=optimizer_lines(history),
    )


_STRAIGHT: Final = " Each step goes on in the direction of the one before"


def _straight(history: History, limit: Thresholds) -> float | None:
    """The cosine of successive updates, where each goes on as the one before; None where not.

    Steps of a fitting size change the slope that they go down. Momentum and the means of Adam would
    make updates alike of whatever size.
    """
    groups = [group for _, group in _groups(history).values()]
    if not groups or any(group.get("momentum") or "betas" in group for group in groups):
        return None
    if any(history.has(parameter.address, SECOND_MOMENT) for parameter in history.parameters):
        return None
    cosines = []
    for parameter in history.parameters:
        curve = history.curve(parameter.address, UPDATE_COSINE)
        if len(curve) >= limit.rises:
            cosines.append(median(curve.value[len(curve) // 2 :]))
    if not cosines or median(cosines) < limit.straight:
        return None
    return median(cosines)


def _groups(history: History) -> dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Of each group of an optimizer, by its name among the rates: its event and its settings."""
    return {
        f"{event.data.get('optimizer')}.{place}": (event.data, group)
        for event in history.events(GROUPS)
        for place, group in enumerate(event.data.get("groups") or ())
        if isinstance(group, Mapping)
    }


def _unturned(history: History, limit: Thresholds) -> Finding | None:
    """A cycle that was laid out in batches, and turned once an epoch."""
    turns, steps = history.loop(SCHEDULES).total, history.loop(OPTIMIZER_STEPS).total
    groups = _groups(history)
    for name, curve in history.rates().items():
        event, group = groups.get(name, ({}, {}))
        planned, top = event.get("planned") or [], group.get("max_lr")
        if len(planned) != 1 or not isinstance(top, int | float) or not len(curve):
            continue
        cycle = float(planned[0])
        # As many steps of the optimizer as the cycle has: it was laid out in these.
        if steps < limit.steps or not 0.8 * cycle <= steps <= 1.25 * cycle:
            continue
        highest = float(curve.value.max())
        if turns > limit.turned * cycle or highest > limit.reached * float(top):
            continue
        return Finding(
            "learning-rate-too-low",
            "warning",
            f"OneCycleLR is laid out for {cycle:.0f} steps, and the optimizer made {steps:.0f}, "
            f"but scheduler.step() was called {turns:.0f} times: the learning rate has come to "
            f"{number(highest)}, and never to its max_lr of {number(float(top))}.",
            "Call scheduler.step() after each batch; or make the cycle as long as there are "
            "epochs: OneCycleLR(..., total_steps=epochs).",
            first_step=history.first_step,
            last_step=max(history.steps - 1, history.first_step),
            evidence={
                "steps of the scheduler by those planned": Evidence(turns / cycle, limit.turned),
                "highest rate by max_lr": Evidence(highest / float(top), limit.reached),
            },
            lines=(*call_lines(history, "schedule"),
                   *scheduler_lines(history, name.partition(".")[0])),
        )  # fmt: skip
    return None


def _squared(history: History, limit: Thresholds, went: Progress | None) -> Finding | None:
    """A rate that was multiplied by itself."""
    if history.steps < limit.steps or not history.loop(SCHEDULES).total or went is None:
        return None
    groups = _groups(history)
    for name, curve in history.rates().items():
        base = groups.get(name, ({}, {}))[1].get("initial_lr")
        if not len(curve) or not isinstance(base, int | float) or not 0 < base < limit.reached:
            continue
        highest = float(curve.value.max())
        if abs(highest - base * base) > 1e-6 * base * base:
            continue
        return Finding(
            "learning-rate-too-low",
            "info" if went.does_its_job else "warning",
            f"the learning rate is never above {number(highest)}, which is the square of the "
            f"{number(float(base))} that the optimizer was made with: what the scheduler "
            "multiplies the rate by seems to be the rate itself.",
            "The function of LambdaLR returns a factor of the optimizer's rate, not a rate: begin "
            "with 1.0.",
            first_step=history.first_step,
            last_step=max(history.steps - 1, history.first_step),
            evidence={"highest rate": Evidence(highest, base * base)},
            lines=(*scheduler_lines(history, name.partition(".")[0]),) or optimizer_lines(history),
        )
    return None


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
        "event.order",
        "module.parameters",
        "scalar.lr",
        "series.@loop.forwards.mean",
        "series.@loop.grad_norm.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loop.schedules.mean",
        "series.@loop.update_ratio.mean",
        "series.grads.rms",
        "series.update_cosine.mean",
    ),
    defaults=Thresholds(),
)
