"""The values of losses: each is folded into its series, and what a step's come to is a point."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from nethook.runs import names
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.losses.tally import (
    Batch,
    PassTally,
    Point,
    filled,
    is_on_device,
    packed,
    point_of_step,
)
from nethook.watching.recorder import Recorder


class Points(Protocol):
    """Scalars that are still on a device: `measuring.loop_numbers.Pending`."""

    def later(self, numbers: torch.Tensor, told: Callable[[list[float]], None]) -> None:
        """Numbers on a device, and what to call once they are known."""


class Numbers(Protocol):
    """The numbers of the step that is under way: `measuring.loop_numbers.LoopNumbers`."""

    @property
    def pending(self) -> Points:
        """Scalars that are still on a device."""

    def number(self, row: int, value: float) -> None:
        """One number of a row."""


class LossValues(FailsAlone, Recorder):
    """The values of the step, and of the evaluation pass, that are under way."""

    part = "the values of losses"

    def __init__(self, journal: Journal, numbers: Numbers) -> None:
        self._watching: Journal = journal
        self._numbers = numbers
        self.off = False
        self.rows: dict[str, int] = {}
        """The row of each loss that has one."""
        self.sums: dict[str, list[Batch]] = {}
        """What each loss was in this step, pass by pass."""
        self._has_devices = False  # whether a value or a number of samples was ever on a device
        self._names: list[str] = list(journal.writer.earlier.get("losses") or ())
        self._pass: dict[str, PassTally] = {}

    def trained(self, name: str, batch: Batch) -> None:
        """A value of a loss, unscaled; a tensor stays on its device until the window ends."""
        journal, value = self._watching, batch.value
        row = self.rows.get(name)
        if row is None:
            if name not in self._names:
                self._names.append(name)
                journal.writer.info(losses=list(self._names))
            row = journal.row(names.loss_address(name), names.LOSS)
            if row is None:
                return
            journal.train.slot(row)
            self.rows[name], self.sums[name] = row, []
        if isinstance(value, torch.Tensor):
            self._has_devices = True
            journal.train.slots[row].fold(value)
        else:
            self._numbers.number(row, value)
            self._has_devices = self._has_devices or isinstance(batch.samples, torch.Tensor)
        if not self.off:
            self.sums[name].append(batch)

    def evaluated(self, name: str, batch: Batch) -> None:
        """A value of a loss in a pass without gradient."""
        journal, value = self._watching, batch.value
        row = journal.row(names.loss_address(name), names.LOSS)
        if row is not None:
            rows = journal.off
            slot = rows.slots.get(row) or rows.slot(row)
            if not isinstance(value, torch.Tensor):
                value = torch.tensor(value, dtype=torch.float64)
            slot.fold(value)
        if self.off or "eval" not in journal.options.phases:
            return
        tally = self._pass.get(name)
        if tally is None:
            tally = self._pass[name] = PassTally()
        tally.add(batch)

    def take(self) -> list[tuple[str, Point]]:
        """What each loss of this step, which is over, comes to; those on a device come later."""
        points = []
        for name, batches in self.sums.items():
            if not batches:
                continue
            taken = batches.copy()
            batches.clear()
            if self._has_devices and any(map(is_on_device, taken)):
                told = functools.partial(self._step_known, name, self._watching.step, taken)
                self._numbers.pending.later(packed(taken), told)
            else:
                points.append((name, point_of_step(taken)))
        return points

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
                self._numbers.pending.later(packed(waiting), told)
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
