"""The values of losses: each is folded into its series, and what a step's come to is a point."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

import torch

from nethook.runs import names
from nethook.watching.fail_open import contained
from nethook.watching.losses.tally import (
    Batch,
    PassTally,
    Point,
    filled,
    is_on_device,
    packed,
    point_of_step,
)
from nethook.watching.protocols import LossSession


class LossValues:
    """The values of the step, and of the evaluation pass, that are under way."""

    part = "the values of losses"

    def __init__(self, session: LossSession) -> None:
        self._watching = session
        self.off = False
        self.rows: dict[str, int] = {}
        """The row of each loss that has one."""
        self.sums: dict[str, list[Batch]] = {}
        """What each loss was in this step, pass by pass."""
        self.some = False
        """Whether there are any."""
        self._names: list[str] = list(session.writer.earlier.get("losses") or ())
        self._pass: dict[str, PassTally] = {}

    def add(self, name: str, batch: Batch) -> None:
        """One value of a loss, in training."""
        session, value = self._watching, batch.value
        row = self.rows.get(name)
        if row is None:
            if name not in self._names:
                self._names.append(name)
                session.writer.info(losses=list(self._names))
            row = session.row(names.loss_address(name), names.LOSS)
            if row is None:
                return
            session.train.slot(row)
            self.rows[name], self.sums[name] = row, []
        if isinstance(value, torch.Tensor):
            session.train.rows.slots[row].fold(value)
        else:
            session.numbers.number(row, value)
        if not self.off:
            self.sums[name].append(batch)
            self.some = True

    def evaluated(self, name: str, batch: Batch) -> None:
        """One value of a loss, in an evaluation pass."""
        tally = self._pass.get(name)
        if self.off:
            return
        if tally is None:
            tally = self._pass[name] = PassTally()
        tally.add(batch)

    @contained
    def take(self) -> list[tuple[str, Point]]:
        """What each loss of this step, which is over, comes to; those on a device come later."""
        points = []
        self.some = False
        for name, batches in self.sums.items():
            if not batches:
                continue
            taken = batches.copy()
            batches.clear()
            if any(map(is_on_device, taken)):
                told = functools.partial(self._step_known, name, self._watching.step, taken)
                self._watching.pending.later(packed(taken), told)
            else:
                points.append((name, point_of_step(taken)))
        return points

    def step_ended(self, step: int) -> None:
        """What each loss comes to is a point."""
        if self.some:
            for name, point in self.take() or ():
                self._log(name, "train", step, point)

    @contained
    def pass_ended(self, phase: str) -> None:
        """What each loss of a pass without gradient comes to is a point, if it evaluates."""
        tallies, self._pass = self._pass, {}
        if phase != "eval":
            return
        for name, tally in tallies.items():
            step, waiting = self._watching.step, tally.take_waiting()
            if waiting:
                told = functools.partial(self._pass_known, name, step, tally, waiting)
                self._watching.pending.later(packed(waiting), told)
            else:
                self._log(name, phase, step, tally.point())

    def turn_off(self) -> None:
        """After an error: losses have no points any more."""
        self.off = True
        self._pass.clear()
        for batches in self.sums.values():
            batches.clear()

    @contained
    def _step_known(
        self, name: str, step: int, batches: Sequence[Batch], numbers: list[float]
    ) -> None:
        self._log(name, "train", step, point_of_step(filled(batches, numbers)))

    @contained
    def _pass_known(
        self, name: str, step: int, tally: PassTally, waiting: Sequence[Batch], numbers: list[float]
    ) -> None:
        for batch in filled(waiting, numbers):
            tally.add(batch)
        self._log(name, "eval", step, tally.point())

    def _log(self, name: str, phase: str, step: int, point: Point) -> None:
        self._watching.writer.log_points(
            names.loss_name(name, phase), [(step, time.time(), *point)], keep=names.KEPT_STEPS
        )
