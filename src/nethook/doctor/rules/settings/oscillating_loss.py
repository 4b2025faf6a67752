"""The loss swings and does not fall.

Cause: steps at the edge of what is stable: too high a rate, too much momentum.
Evidence: the loss swings around its trend and successive updates point in opposite directions; or
it doubles and halves again and again, beyond the noise of single batches.
Fix: a lower rate or less momentum, larger batches.
Silent: where the loss falls (unless it swings widely to the last, by updates that undo each other),
for adversarial losses, for noise without opposite updates, and where updates go on in one direction
(a target that moves: the loss of Q-learning).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import optimizer_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.onset import since
from nethook.doctor.signals.progress import PROGRESS_READS, Progress, progress
from nethook.doctor.signals.quantiles import median, running_medians
from nethook.runs.names import UPDATE_COSINE


class Thresholds(NamedTuple):
    """What may be changed."""

    cosine: float = -0.3  # of successive updates, the median over parameters
    bounce: float = (
        -0.9
    )  # cosine from which on the loss need not swing: it is the same on both sides
    noise: float = 0.05  # spread of the loss around its trend, by its size
    wide: float = 2  # a swing: up to so many times as much, and back
    swings: float = 4
    onward: float = 0.5  # cosine above which it is not the steps that swing


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    if went is None or not went.finite:
        return
    cosine = _cosine(history)
    swings = _swings(history, limit)
    if went.improves and not _is_wild(history, went, cosine, swings, limit):
        return
    swing = went.noise / max(abs(went.end), abs(went.start), 1e-12)
    undone = cosine is not None and (
        cosine <= limit.bounce or (cosine <= limit.cosine and swing >= limit.noise)
    )
    onward = cosine is not None and cosine > limit.onward
    if not undone and (onward or len(swings) < limit.swings):
        return
    how = f"; successive updates undo each other (cosine {cosine:.2f})" if undone else ""
    first = swings[0] if swings and not undone else _undone_since(history, limit)
    evidence = {
        "swing of the loss": Evidence(swing, limit.noise),
        "swings by half and back": Evidence(len(swings), limit.swings),
    }
    if cosine is not None:
        evidence["cosine of successive updates"] = Evidence(cosine, limit.cosine)
    yield Finding(
        "oscillating-loss",
        "warning",
        f"the loss swings around {went.end:.3g} and does not fall{how}.",
        "Lower the learning rate by a factor of 3 to 10, or the momentum to 0.9.",
        first_step=first,
        last_step=history.steps - 1,
        evidence=evidence,
        lines=optimizer_lines(history),
    )


def _is_wild(
    history: History, went: Progress, cosine: float | None, swings: list[int], limit: Thresholds
) -> bool:
    """Whether a loss that ends low does so by chance: it swings to the last, well above zero."""
    late = [step for step in swings if step >= history.steps // 2]
    if cosine is None or cosine > limit.bounce or len(late) < limit.swings:
        return False
    (_, curve) = next(history.named_losses())
    values = curve.since(history.steps // 2).value
    usual = median(values[~np.isnan(values)])
    return usual > 0.05 * abs(went.start)


def _cosine(history: History) -> float | None:
    """The median over parameters of the cosine of successive updates."""
    cosines = [
        median(curve.value)
        for parameter in history.parameters
        if len(curve := history.curve(parameter.address, UPDATE_COSINE)) >= 5
    ]
    return median(cosines) if cosines else None


def _undone_since(history: History, limit: Thresholds) -> int:
    """The step from which on the updates of most parameters undid each other."""
    began = [
        since(curve, opposite)
        for parameter in history.parameters
        if len(curve := history.curve(parameter.address, UPDATE_COSINE)) >= 5
        and (opposite := curve.value <= limit.cosine).any()
    ]
    return int(median(began)) if began else history.first_step


def _swings(history: History, limit: Thresholds) -> list[int]:
    """Steps at which the loss, of a kind that has a floor, turned after a wide swing.

    Medians of five values take the noise of single batches out.
    """
    if not all(record.fact("floored") for record in history.records("train")):
        return []
    (_, curve) = next(history.named_losses())
    values = curve.value[np.isfinite(curve.value)]
    if len(values) < 25:
        return []
    smooth = running_medians(values, 5)
    low = high = float(smooth[0])
    turns: list[int] = []
    direction = 0
    for index, value in enumerate(smooth.tolist()):
        low, high = min(low, value), max(high, value)
        if direction <= 0 and value > limit.wide * low:
            direction, high = 1, value
            turns.append(int(curve.step[index]))
        elif direction >= 0 and value * limit.wide < high:
            direction, low = -1, value
            turns.append(int(curve.step[index]))
    return turns


RULE = Rule(
    "oscillating-loss",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "event.groups",
        "series.@loop.forwards.mean",
        "series.update_cosine.mean",
    ),
    defaults=Thresholds(),
)
