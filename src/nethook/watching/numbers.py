"""Numbers of the loop: one a step, and those that are still on their way from a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import torch

from nethook.runs import names
from nethook.stats.flat import Numbers
from nethook.stats.torched import number_type

if TYPE_CHECKING:
    from nethook.watching.session import Session

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
_LOGGED: Final = (names.GRAD_NORM, names.UPDATE_RATIO)


class LoopNumbers:
    """The numbers of `@loop`, of the step that is under way."""

    def __init__(self, session: Session) -> None:
        self._session = session
        rows = session.train.rows
        places = [session.row(names.LOOP, each) or 0 for each in QUANTITIES]
        self._numbers = Numbers(rows, places)
        self._values = self._numbers.values
        self._at = {name: at for at, name in enumerate(QUANTITIES)}
        self._one: dict[int, Numbers] = {}
        self.counts = dict.fromkeys(_COUNTED, 0)

    def set(self, name: str, value: float) -> None:
        """The number of this step."""
        self._values[self._at[name]] = value

    def count(self, name: str, times: int = 1) -> None:
        """One more of these in this step."""
        self.counts[name] += times

    def fold_one(self, row: int, value: float) -> None:
        """One number into one row, now; NaN counts as such."""
        session = self._session
        if value != value:
            session.train.rows.slots[row].fold(torch.tensor(value, dtype=torch.float64))
            return
        one = self._one.get(row)
        if one is None:
            one = self._one[row] = Numbers(session.train.rows, [row])
        one.values[0] = value
        one.fold()

    def later(self, numbers: Mapping[str, torch.Tensor]) -> None:
        """Numbers of this step that are still on a device."""
        session = self._session
        if not numbers:
            return
        places = [session.row(names.LOOP, name) or 0 for name in numbers]
        session.train.rows.fold_numbers(places, torch.stack(list(numbers.values())))
        for name, value in numbers.items():
            if name in _LOGGED:
                session.pending.add(name, value, keep=names.KEPT_STEPS)

    def end_step(self) -> None:
        """Folds the numbers of the step that has ended."""
        session, at, values = self._session, self._at, self._values
        for name, count in self.counts.items():
            values[at[name]] = count
        self.counts = dict.fromkeys(_COUNTED, 0)
        values[at[names.FORWARDS]] = session.forwards
        values[at[names.BACKWARDS]] = session.backwards
        for name in _LOGGED:
            value = values[at[name]]
            if value == value:
                session.writer.log(name, float(value), session.step, keep=names.KEPT_STEPS)
        self._numbers.fold()


class Pending:
    """Numbers on a device, fetched together when a window ends."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: list[tuple[str, int, int, torch.Tensor]] = []

    def add(self, name: str, value: torch.Tensor, *, keep: int = 0) -> None:
        """A scalar of this step, which becomes known later."""
        self._waiting.append((name, self._session.step, keep, value.detach()))

    def fetch(self) -> None:
        """Fetches all: one copy a device, which waits for it."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        by_device: dict[torch.device, list[tuple[str, int, int, torch.Tensor]]] = {}
        for each in waiting:
            by_device.setdefault(each[3].device, []).append(each)
        for group in by_device.values():
            kind = number_type(group[0][3].device)
            stacked = torch.stack([value.reshape(()).to(kind) for *_, value in group])
            for (name, step, keep, _), number in zip(group, stacked.tolist(), strict=True):
                self._session.writer.log(name, number, step, keep=keep)
