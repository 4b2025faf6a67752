"""Numbers of the loop: one per step, and those that are still on their way from a device."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import torch

from nethook.runs import names
from nethook.stats.tables import Numbers
from nethook.stats.transfers import Transfers
from nethook.watching.measuring.needs import NumberSession

QUANTITIES: Final = (
    names.FORWARDS, names.BACKWARDS, names.OPTIMIZER_STEPS, names.SKIPPED_STEPS, names.ZERO_GRADS,
    names.OLD_GRADIENTS, names.WIPED, names.EMPTY_GRADIENTS, names.CLIPS, names.SCALED_CLIPS,
    names.UNSCALES, names.SCHEDULES, names.GRAD_NORM, names.GRAD_NORM_UNCLIPPED, names.CLIP_LIMIT,
    names.UPDATE_RATIO, names.LOSS_SCALE, names.STEP_SECONDS, names.WATCH_SECONDS,
)  # fmt: skip

_COUNTED: Final = (
    names.OPTIMIZER_STEPS, names.SKIPPED_STEPS, names.ZERO_GRADS, names.OLD_GRADIENTS, names.WIPED,
    names.CLIPS, names.SCALED_CLIPS, names.UNSCALES, names.SCHEDULES,
)  # fmt: skip
FORWARDS_AT: Final = QUANTITIES.index(names.FORWARDS)
BACKWARDS_AT: Final = QUANTITIES.index(names.BACKWARDS)
ZERO_GRADS_AT: Final = QUANTITIES.index(names.ZERO_GRADS)
STEPS_AT: Final = QUANTITIES.index(names.OPTIMIZER_STEPS)
STEP_AT: Final = QUANTITIES.index(names.STEP_SECONDS)
WATCH_AT: Final = QUANTITIES.index(names.WATCH_SECONDS)
_LOGGED: Final = (names.GRAD_NORM, names.UPDATE_RATIO)

MORE: Final = 16
"""Other numbers, such as losses, that are folded with those of the loop; the rest one by one."""


class LoopNumbers:
    """The numbers of `@loop`, of the step that is under way."""

    def __init__(self, session: NumberSession) -> None:
        self._session = session
        rows = session.train
        row_numbers = [session.row(names.LOOP, name) or 0 for name in QUANTITIES] + [0] * MORE
        self._numbers = Numbers(rows, row_numbers)
        self._indices = {name: index for index, name in enumerate(QUANTITIES)}
        self._one: dict[int, Numbers] = {}
        self.none: list[Any] = [None] * len(row_numbers)
        """A count is there from the start of a step, and a number once it is known."""
        for name in _COUNTED:
            self.none[self._indices[name]] = 0
        self.values = self.none.copy()
        """The numbers of the step that is under way, by position."""
        self._logged = [(name, self._indices[name]) for name in _LOGGED]
        self._more: dict[int, int] = {}  # row -> where its number of this step stands

    def set(self, name: str, value: float) -> None:
        """The number of this step."""
        self.values[self._indices[name]] = value

    def count(self, name: str, times: int = 1) -> None:
        """One more of these in this step."""
        self.values[self._indices[name]] += times

    def number(self, row: int, value: float) -> None:
        """One number of a row; the first of a step is folded with all the others at its end."""
        index = self._more.get(row)
        if index is None:
            if value != value or len(self._more) >= MORE:
                self._session.lull.leave()
                self.fold_one(row, value)
                return
            index = self._more[row] = len(QUANTITIES) + len(self._more)
            self._numbers.place(index, row)
        if self.values[index] is None and value != value:
            self._session.lull.leave()  # nothing at the end of the step tells that there was one
        if value != value or self.values[index] is not None:
            self.fold_one(row, value)
        else:
            self.values[index] = value

    def fold_one(self, row: int, value: float) -> None:
        """One number into one row, now; NaN counts as such."""
        session = self._session
        if value != value:
            session.train.slots[row].fold(torch.tensor(value, dtype=torch.float64))
            return
        one = self._one.get(row)
        if one is None:
            one = self._one[row] = Numbers(session.train, [row])
        one.values[0] = value
        one.fold()

    def later(self, numbers: Mapping[str, torch.Tensor]) -> None:
        """Numbers of this step that are still on a device."""
        session = self._session
        if not numbers:
            return
        rows = [session.row(names.LOOP, name) or 0 for name in numbers]
        session.train.fold_numbers(rows, torch.stack(list(numbers.values())))
        for name, value in numbers.items():
            if name in _LOGGED:
                session.pending.add(name, value, keep=names.KEPT_STEPS)

    def index_of(self, row: int) -> int | None:
        """Where in `values` the numbers of a row stand, if they are folded with the others."""
        return self._more.get(row)

    def end_step(self, _: int) -> None:
        """Folds the numbers of the step that has ended."""
        session, values = self._session, self.values
        values[FORWARDS_AT] = session.forwards
        values[BACKWARDS_AT] = session.backwards
        fresh = self.none.copy()
        self._numbers.fold_list(values)
        self.values = fresh
        if session.looks:
            for name, index in self._logged:
                value = values[index]
                if value is not None and value == value:
                    session.writer.log(name, value, session.step, keep=names.KEPT_STEPS)

    def fold_steps(self, steps: list[list[Any]]) -> None:
        """Folds the numbers of several steps, each of which has seen what is in its list."""
        self._numbers.fold_lists(steps)


class Pending:
    """Scalars that go to the log, fetched together when a window ends.

    Every one of them is a point of its own, so none may be dropped: there is no limit.
    """

    def __init__(self, session: NumberSession) -> None:
        self._session = session
        self._transfers = Transfers(most=None)

    def __len__(self) -> int:
        return len(self._transfers)

    def add(self, name: str, value: torch.Tensor, *, keep: int = 0) -> None:
        """A scalar of this step, which becomes known later."""
        log = functools.partial(self._log, name, self._session.step, keep)
        self._transfers.keep(value.detach(), log)

    def fetch(self) -> None:
        """Fetches all: one copy per device, which waits for it."""
        if self._transfers:
            self._transfers.fetch()

    def _log(self, name: str, step: int, keep: int, numbers: list[float]) -> None:
        self._session.writer.log(name, float(numbers[0]), step, keep=keep)
