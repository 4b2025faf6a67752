"""Loss against loss: a script as it is, and with a change, over the same steps.

The training loss is the mean over the last quarter of the steps that both have made; the evaluation
loss is the last that both have taken. A change helped where the loss that judges it is lower by
more than a twentieth and by more than twice its noise, and no other loss is worse by as much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nethook.running.trying.change import Judge
from nethook.runs.reading.results import Floats, Integers
from nethook.runs.reading.run import open_run

_PART: Final = 4
_MARGIN: Final = 0.05
_NOISE: Final = 2.0
_FEWEST: Final = 4
"""Steps before which nothing is said."""


@dataclass(frozen=True)
class Course:
    """A loss as it went: steps, counted from 0, and values."""

    step: Integers
    value: Floats

    @property
    def steps(self) -> int:
        """How many steps it covers."""
        return int(self.step[-1]) + 1 if len(self.step) else 0


@dataclass(frozen=True)
class Losses:
    """The losses of a trial by the lines that take them; `crashed` where the script failed."""

    train: Mapping[str, Course]
    eval: Mapping[str, Course]
    crashed: bool = False

    @property
    def steps(self) -> int:
        """How many steps they cover."""
        return max((course.steps for course in self.train.values()), default=0)


@dataclass(frozen=True)
class Pair:
    """A loss as it is, and with the change; `better` is 1, or -1 where it is worse, else 0."""

    before: float
    after: float
    better: int


@dataclass(frozen=True)
class Comparison:
    """What a change did: the loss that shows it best in each phase.

    `helped` is None where the losses do not say; then `why` says why not. Where there is a loss of
    one alone, it says that.
    """

    steps: int
    train: Pair | None = None
    eval: Pair | None = None
    helped: bool | None = None
    why: str = ""


def read_losses(path: Path, steps: int, *, crashed: bool = False) -> Losses:
    """The losses in a run file, of its first steps: the one that a trial ended in is not whole."""
    with open_run(path) as run:
        scalars = run.scalars
        train, evaluation = (
            {
                name: Course(curve.step[kept], curve.shown[kept])
                for name, curve in run.loss_curves(phase, scalars).items()
                for kept in [curve.step < steps + (phase == "eval")]
            }
            for phase in ("train", "eval")
        )
    return Losses(train, evaluation, crashed)


def compare(before: Losses, after: Losses, judged_by: Judge) -> Comparison:
    """Whether a change helped."""
    # Where one of them crashed, the other one's loss at that step says nothing of it.
    steps = min(
        (losses.steps for losses in (before, after) if not losses.crashed),
        default=min(before.steps, after.steps),
    )
    train = _worst_first(
        [
            _of_part(before.train[name], after.train[name], steps, before.crashed, after.crashed)
            for name in before.train
            if name in after.train
        ]
    )
    evaluation = _worst_first(
        [
            pair
            for name in before.eval
            if name in after.eval
            and (pair := _of_last(before.eval[name], after.eval[name], steps)) is not None
        ]
    )
    judge = train if judged_by == "train" else evaluation
    other = evaluation if judged_by == "train" else None
    if steps < _FEWEST:
        return Comparison(steps, why=f"there were {steps} steps to compare")
    if judge is None:
        what = "training loss" if judged_by == "train" else "evaluation with a loss"
        return Comparison(steps, train, evaluation, why=f"no {what} was seen in both trials")
    helped = judge.better > 0 and (other is None or other.better >= 0)
    ends = "the script ends with an error"
    crashes = {(True, False): f"as it is, {ends}", (False, True): f"with the change, {ends}"}
    why = crashes.get((before.crashed, after.crashed), "")
    return Comparison(steps, train, evaluation, helped, why)


def _worst_first(pairs: list[Pair]) -> Pair | None:
    """Of several losses one that got worse, else the one that got best."""
    worse = [pair for pair in pairs if pair.better < 0]
    better = [pair for pair in pairs if pair.better > 0]
    return (worse + better + pairs)[0] if pairs else None


def _of_part(one: Course, other: Course, steps: int, crashed: bool, also: bool) -> Pair:
    """The means over the last part of the steps."""
    start = steps - max(1, steps // _PART)
    parts = []
    for course, ended in ((one, crashed), (other, also)):
        value = course.value[(course.step >= start) & (course.step < steps)]
        parts.append(np.array([math.nan]) if ended or not len(value) else value)  # it ended before
    before, after = (float(part.mean()) for part in parts)
    noise = 0.0
    if math.isfinite(before) and math.isfinite(after):
        # Step by step where both have each: as a rule the batches are the same.
        if len(parts[0]) == len(parts[1]):
            noise = float((parts[0] - parts[1]).var()) / len(parts[0])
        else:
            noise = sum(float(part.var()) / len(part) for part in parts)
    return Pair(before, after, _better(before, after, _NOISE * math.sqrt(noise)))


def _of_last(one: Course, other: Course, steps: int) -> Pair | None:
    """The last values that both have, at the same number of steps."""
    both = sorted(set(one.step.tolist()) & set(other.step.tolist()))
    at = [step for step in both if step <= steps]
    if not at or at[-1] == 0:  # before training
        return None
    before, after = (
        float(course.value[np.flatnonzero(course.step == at[-1])[-1]]) for course in (one, other)
    )
    return Pair(before, after, _better(before, after, 0.0))


def _better(before: float, after: float, noise: float) -> int:
    if not (math.isfinite(before) and math.isfinite(after)):
        return int(math.isfinite(after)) - int(math.isfinite(before))
    least = max(_MARGIN * max(abs(before), abs(after)), noise if math.isfinite(noise) else 0.0)
    return int(before - after > least) - int(after - before > least)
