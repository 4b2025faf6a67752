"""The values of losses: each is folded into its series, and what a step's come to is a point."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

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

    def room(self, row: int) -> bool:
        """Whether numbers of a row are folded when steps are: they come with `keep`, then."""


FOLDED: Final = -1
"""In place of a row: the value is in it already."""


class LossValues(FailsAlone, Recorder):
    """The values of the step, and of the evaluation pass, that are under way."""

    part = "the values of losses"

    def __init__(self, journal: Journal, numbers: Numbers) -> None:
        self._watching: Journal = journal
        self._numbers = numbers
        self.off = False
        self.rows: dict[str, int] = {}
        """The row of each loss that has one."""
        self._folded_later: dict[str, int] = {}  # those whose values are folded when steps are
        self.heard: list[tuple[str, int, Batch]] = []
        """The batches of this step: see `take`."""
        self._has_devices = False  # whether a value or a number of samples was ever on a device
        self._names: list[str] = list(journal.writer.earlier.get("losses") or ())
        self._pass: dict[str, PassTally] = {}

    def trained(self, name: str, batch: Batch) -> bool:
        """A value of a loss, unscaled; a tensor stays on its device until the window ends.

        Whether it is known, and finite.
        """
        value, samples = batch[0], batch[1]
        # Neither NaN nor infinite: the one is not itself, the other less itself is NaN.
        fine = type(value) is float and value - value == 0.0
        if fine and (type(samples) is float or samples is None):
            row = self._folded_later.get(name)
            if row is not None:  # as nearly always
                self.heard.append((name, row, batch))
                return True
        self._fold_now(name, batch)
        return fine

    def _fold_now(self, name: str, batch: Batch) -> None:
        """The first value of a loss, and those that cannot wait: not finite, or on a device."""
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
            self.rows[name] = row
            if not self.off and self._numbers.room(row):
                self._folded_later[name] = row
        if isinstance(value, torch.Tensor):
            journal.train.slots[row].fold(value)
        else:
            self._numbers.number(row, value)
        self._has_devices = self._has_devices or is_on_device(batch)
        if not self.off:
            self.heard.append((name, FOLDED, batch))

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

    def take(self) -> list[tuple[str, int, Batch]]:
        """The batches of this step, which is over; those on a device come later.

        With each is the name of its loss, and the row that its value goes to when the step is
        folded. What they come to (`point_of_step`) is computed then, too.
        """
        heard, self.heard = self.heard, []
        return self._known_of(heard) if self._has_devices else heard

    @contained
    def point(self, batches: Sequence[Batch]) -> Point:
        """What the batches of one loss in a step come to."""
        return point_of_step(batches)

    def _known_of(self, heard: list[tuple[str, int, Batch]]) -> list[tuple[str, int, Batch]]:
        """Without those losses of which a batch is on a device: they are told once it is known."""
        away = {name for name, _, batch in heard if is_on_device(batch)}
        for name in away:
            batches = [batch for other, _, batch in heard if other == name]
            told = functools.partial(self._step_known, name, self._watching.step, batches)
            self._numbers.pending.later(packed(batches), told)
        for name, row, batch in heard:
            if name in away and row != FOLDED:
                self._numbers.number(row, float(batch.value))
        return [entry for entry in heard if entry[0] not in away]

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
        self._folded_later = {}
        self.heard = []

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
