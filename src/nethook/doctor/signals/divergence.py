"""Whether a run had learnt, and lost it again; and what changed in the record before it did.

A loss that was well below its start, is back up, and stays there. Where a loss rises and falls
again (a schedule with restarts, a new class of data), or where its targets grow with it (the values
of Q-learning), nothing was lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from nethook.doctor.history import Curve, History
from nethook.doctor.signals.progress import (
    ENOUGH,
    PROGRESS_READS,
    constant_score,
    longest_loss,
    medians_at,
    progress_of,
)
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import GROUPS, INPUTS, MODE, SCALE_CHANGED
from nethook.text.numbers import ascii_number as number

DIVERGENCE_READS: Final = (
    *PROGRESS_READS,
    "event.groups",
    "event.loss-scale",
    "event.mode",
    "scalar.lr",
    "series.@loop.forwards.mean",
    "series.inputs.rms",
)
"""The fields that `divergence` and `changes_before` read."""

BACK: Final = 0.6
"""Of the way from the best loss back to where it began, or to that of a guess: from there on it is
lost."""
STAYS: Final = 12
"""Values of the loss that must lie up there, to the end."""
RECOVERS: Final = 0.3
"""Of the way up, by which it may have come down again by the end."""
LEARNT: Final = 0.25
"""Of its first value, by which a loss must have fallen to have learnt something."""


class Divergence(NamedTuple):
    """A loss that had fallen, and is up again."""

    start: float
    top: float  # its start, or what a guess would score if that is less
    best: float
    best_step: int
    onset: int  # the first step from which on it is up
    end: float  # median since then
    guess: float | None  # what the best constant answer would score


def divergence(
    history: History, back: float = BACK, stays: float = STAYS, learnt: float = LEARNT
) -> Divergence | None:
    """How a run lost what it had learnt; None where it did not."""
    name = f"divergence {back} {stays} {learnt}"
    return history.once(name, lambda history: _divergence(history, back, stays, learnt))


def _divergence(history: History, back: float, stays: float, learnt: float) -> Divergence | None:
    named = longest_loss(history)
    if named is None:
        return None
    name, curve = named
    records = history.records("train", name)
    if not all(record.fact("floored") for record in records):
        return None  # what goes up and down around zero says nothing
    curve = curve.where(np.isfinite(curve.value))
    guess = constant_score(history, name)
    went = progress_of(curve, guess)
    if went is None or len(curve) < 3 * ENOUGH:
        return None
    width = max(5, len(curve) // 20)
    places, smooth = medians_at(curve.value, width)
    lowest = int(np.argmin(smooth))
    best = float(smooth[lowest])
    # Where it began above a guess (a start that is too sure), the guess is what it is back at.
    top = went.start if guess is None else min(went.start, guess)
    if top - best <= learnt * abs(top) or went.start - best <= 5 * went.noise:
        return None
    limit = best + back * (top - best)
    above = smooth[lowest:] > limit
    if not above[-1]:
        return None
    below = np.flatnonzero(~above)
    first = lowest + int(below[-1]) + 1
    begins = int(places[first])
    while begins > 0 and curve.value[begins - 1] > limit:  # the first of them, not the median's
        begins -= 1
    after = curve.value[begins:]
    if len(after) < stays:
        return None
    end = median(after)
    third = max(4, len(after) // 3)
    peak, last = median(after[:third]), median(after[-third:])
    if last < limit or (last < top and peak - last > RECOVERS * (peak - best)):
        return None  # it is on its way down again
    onset, best_step = int(curve.step[begins]), int(curve.step[places[lowest]])
    if _targets_moved(history, name, best_step):
        return None
    return Divergence(went.start, top, best, best_step, onset, end, guess)


def _targets_moved(history: History, name: str, best_step: int) -> bool:
    """Whether the targets have another size since: those that a network makes for itself grow.

    Records lie further and further apart, so the last ones stand for the end.
    """
    before: list[float] = []
    since: list[float] = []
    for record in history.records("train", name):
        target = record.fact("target") or {}
        mean, std = target.get("mean"), target.get("std")
        if mean is not None and std is not None and record.fact("class_counts") is None:
            size = math.hypot(float(mean), float(std))
            (before if record.step <= best_step else since).append(size)
    if not before or not since or not median(before[-3:]) > 0:
        return False
    return not 0.67 < median(since[-2:]) / median(before[-3:]) < 1.5


class Change(NamedTuple):
    """Something in the record that is different from what it was while the run learnt."""

    step: int
    what: str  # in words
    factor: float  # by how much; NaN where that is no number
    fix: str


def changes_before(history: History, lost: Divergence) -> list[Change]:
    """What changed between the best step and the onset, the most telling first."""
    near = max(3, history.steps // 20)
    found = [
        *_of_inputs(history, lost, near),
        *_of_rates(history, lost, near),
        *_of_events(history, lost, near),
    ]
    return sorted(found, key=lambda change: -_weight(change.factor))


def _weight(factor: float) -> float:
    return abs(math.log(factor)) if factor > 0 else 0.5


def _of_rates(history: History, lost: Divergence, near: int) -> Iterator[Change]:
    """A learning rate that is higher when it is lost than while it was learnt."""
    best: Change | None = None
    for curve in history.rates().values():
        if not len(curve):
            continue
        # A rate may rise while the loss is still at its best.
        learnt = max(lost.best_step - near, 0)
        if _held(curve, lost.best_step) <= _held(curve, learnt):
            learnt = lost.best_step
        then, at = _held(curve, learnt), _held(curve, lost.onset)
        since = curve.until(lost.onset)
        since = since.where(since.value >= at)
        factor = at / then if then > 0 else math.inf if at > 0 else 1.0
        if factor > 1.15 and (best is None or factor > best.factor):
            step = int(since.step[0]) if len(since) else lost.onset
            best = Change(
                step,
                f"the learning rate rose from {number(then)} at step {learnt} to "
                f"{number(at)} at step {step}",
                factor,
                f"Keep the learning rate at about {number(then)}, where the run learnt, or clip "
                "gradients.",
            )
    if best is not None:
        yield best


def _held(curve: Curve, step: int) -> float:
    """The value of a curve that has one point per change, at a step."""
    before = curve.until(step)
    return float(before.value[-1] if len(before) else curve.value[0])


def _of_inputs(history: History, lost: Divergence, near: int) -> Iterator[Change]:
    """Inputs of another size."""
    size = history.curve("", INPUTS, "rms")
    before = size.until(lost.onset - 1).since(lost.best_step - near)
    before = before if len(before) else size.until(lost.onset - 1)
    since = size.since(lost.onset)
    if not len(before) or not len(since):
        return
    then, now = median(before.value), median(since.value)
    if then > 0 and now > 0 and not 1 / 3 < now / then < 3:
        # The first input of that size, which may be a little before the loss shows it.
        other = np.flatnonzero(np.abs(np.log(np.maximum(size.value, 1e-30) / then)) > math.log(2))
        late = [int(size.step[index]) for index in other if size.step[index] >= lost.onset - near]
        step = late[0] if late else lost.onset
        yield Change(
            step,
            f"the inputs, of size {number(then)} until then, are of size {number(now)} since step "
            f"{step}",
            now / then,
            "Bring the new data to the scale of the old (the same type, division and mean).",
        )


def _of_events(history: History, lost: Divergence, near: int) -> Iterator[Change]:
    """Modes, settings of the optimizer, and a loss scale that changed shortly before."""
    words = {
        MODE: ("modules changed between training and evaluation mode", "Call model.train()."),
        GROUPS: ("settings of the optimizer changed", "Compare the settings before and after."),
        SCALE_CHANGED: ("the loss scale changed", "Look at the loss scaler."),
    }
    for kind, (what, fix) in words.items():
        for event in history.events(kind):
            if event.step > 0 and lost.onset - near <= event.step <= lost.onset + 1:
                yield Change(event.step, f"{what} at step {event.step}", math.nan, fix)
                break
