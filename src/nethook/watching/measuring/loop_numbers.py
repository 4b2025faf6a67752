"""The numbers of the loop itself: one of each per step, and the points that are logged of it.

The numbers of a step are kept in a list until somebody needs them in the rows: at once where the
step has measured anything else, together with those of its neighbours where it has not. One call of
the kernel for a hundred steps costs little more than one for a single step.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from nethook.runs import names
from nethook.stats.native import binding
from nethook.stats.tables import Numbers
from nethook.stats.transfers import Transfers
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder

QUANTITIES: Final = (
    names.FORWARDS, names.BACKWARDS, names.OPTIMIZER_STEPS, names.SKIPPED_STEPS, names.ZERO_GRADS,
    names.OLD_GRADIENTS, names.WIPED, names.EMPTY_GRADIENTS, names.CLIPS, names.SCALED_CLIPS,
    names.UNSCALES, names.SCHEDULES, names.GRAD_NORM, names.GRAD_NORM_UNCLIPPED, names.CLIP_LIMIT,
    names.UPDATE_RATIO, names.LOSS_SCALE, names.STEP_SECONDS, names.WATCH_SECONDS,
)  # fmt: skip

_COUNTED: Final = (
    names.OPTIMIZER_STEPS, names.SKIPPED_STEPS, names.OLD_GRADIENTS, names.WIPED,
    names.CLIPS, names.SCALED_CLIPS, names.UNSCALES, names.SCHEDULES,
)  # fmt: skip
_FORWARDS: Final = QUANTITIES.index(names.FORWARDS)
_BACKWARDS: Final = QUANTITIES.index(names.BACKWARDS)
_STEPS: Final = QUANTITIES.index(names.OPTIMIZER_STEPS)
_ZEROES: Final = QUANTITIES.index(names.ZERO_GRADS)
_STEP_SECONDS: Final = QUANTITIES.index(names.STEP_SECONDS)
_WATCH_SECONDS: Final = QUANTITIES.index(names.WATCH_SECONDS)
_LOGGED: Final = (names.GRAD_NORM, names.UPDATE_RATIO)

MORE: Final = 16
"""Other numbers, such as losses, that are folded with those of the loop; the rest one by one."""

_now = time.perf_counter


Losses = Sequence[tuple[str, int, Any]]
"""Of each batch of a step: the name of its loss; the row, which has `room`, that its value is still
to be folded into, or -1; and itself, which begins with the value."""

Ended = tuple[int, float, list[Any], Losses, tuple[int, ...], float]
"""A step that has ended: its number, when by `time.perf_counter`, its numbers, its losses; what the
clock has counted; nethook's own seconds by then."""


class LoopNumbers(Recorder):
    """The numbers of `@loop`, of the step that is under way and of those not folded yet.

    Arguments:
        journal: where they go.
        point_of: the point, as the log takes it, that the batches of one loss in a step come to.
    """

    def __init__(
        self, journal: Journal, point_of: Callable[[list[Any]], tuple[float, ...] | None] = tuple
    ) -> None:
        self._journal = journal
        self._point_of = point_of
        self.pending = Pending(journal)
        rows = journal.train
        row_numbers = [journal.row(names.LOOP, name) or 0 for name in QUANTITIES] + [0] * MORE
        self._numbers = Numbers(rows, row_numbers)
        self._indices = {name: index for index, name in enumerate(QUANTITIES)}
        self._one: dict[int, Numbers] = {}
        self._none: list[Any] = [None] * len(row_numbers)
        # A count is there from the start of a step, and a number once it is known.
        for name in _COUNTED:
            self._none[self._indices[name]] = 0
        self.values = self._none
        """The numbers of the step that is under way, by position; those of a step that has told
        none are `_none` itself, which nobody writes to."""
        self._logged = [(name, self._indices[name]) for name in _LOGGED]
        self._more: dict[int, int] = {}  # row -> where its number of this step stands
        self.irregular = False
        """Whether this step has folded a number by itself: then it is not kept for later."""
        self._ended: list[Ended] = []
        self._then = (_now(), 0.0)  # when the last step that was folded ended; own seconds by then

    def set(self, name: str, value: float) -> None:
        """The number of this step."""
        self._own()[self._indices[name]] = value

    def count(self, name: str, times: int = 1) -> None:
        """One more of these in this step."""
        self._own()[self._indices[name]] += times

    def _own(self) -> list[Any]:
        """The numbers of the step that is under way, to write to."""
        if self.values is self._none:
            self.values = self._none.copy()
        return self.values

    def number(self, row: int, value: float) -> None:
        """One number of a row; the first of a step is folded with all the others at its end."""
        if value != value or not self.room(row):
            # A NaN leaves no trace among the values that tells in which step it was.
            index = self._more.get(row)
            self.irregular = self.irregular or index is None or self.values[index] is None
            self.fold_one(row, value)
        else:
            self._put(self._own(), row, value)

    def room(self, row: int) -> bool:
        """Whether numbers of a row are folded with those of the loop, when a step is folded."""
        if row not in self._more:
            if len(self._more) >= MORE:
                return False
            index = len(QUANTITIES) + len(self._more)
            self._numbers.place(index, row)
            self._more[row] = index
        return True

    def _put(self, values: list[Any], row: int, value: float) -> None:
        """A number among the others of its step; of a second one there, each is folded alone."""
        index = self._more[row]
        if values[index] is None:
            values[index] = value
        else:
            self.fold_one(row, value)

    def fold_one(self, row: int, value: float) -> None:
        """One number into one row, now; NaN counts as such."""
        rows = self._journal.train
        if value != value:
            rows.slots[row].fold(torch.tensor(value, dtype=torch.float64))
            return
        one = self._one.get(row)
        if one is None:
            one = self._one[row] = Numbers(rows, [row])
        one.values[0] = value
        one.fold()

    def later(self, numbers: Mapping[str, torch.Tensor]) -> None:
        """Numbers of this step that are still on a device."""
        journal = self._journal
        if not numbers:
            return
        rows = [journal.row(names.LOOP, name) or 0 for name in numbers]
        journal.train.fold_numbers(rows, torch.stack(list(numbers.values())))
        for name, value in numbers.items():
            if name in _LOGGED:
                self.pending.add(name, value, keep=names.KEPT_STEPS)

    # -- the end of a step --------------------------------------------------------------------

    def keep(self, step: int, losses: Losses) -> None:
        """A step has ended: its numbers wait to be folded. A second time makes no difference."""
        before = self._ended[-1] if self._ended else None
        if before is not None and before[0] == step:
            return
        journal = self._journal
        clock, schedule = journal.clock, journal.schedule
        now, own = _now(), sum(schedule.spent)
        if schedule.hidden.known:
            then, own_then = self._then if before is None else (before[1], before[5])
            schedule.hidden.step_ended(now - then, own - own_then)
        counts = (clock.forwards, clock.backwards, clock.stepped, clock.zeroes)
        ended = (step, now, self.values, losses, counts, own)
        # Nothing is called from here on but for the last, in C: no interrupt comes in between.
        self.values = self._none
        self.irregular = False
        self._ended.append(ended)

    def take(self) -> list[Ended]:
        """The steps that were kept, which are to be folded now: each is given away once."""
        ended, self._ended = self._ended, []
        return ended

    def fold(self, ended: list[Ended]) -> None:
        """Folds the numbers of steps, and logs their points."""
        if not ended:
            return
        rows, none = self._journal.train, self._none
        lists = [step[2].copy() if step[2] is none else step[2] for step in ended]
        (then, own_then), self._then = self._then, (ended[-1][1], ended[-1][5])
        for values, (_, now, _, losses, counts, own) in zip(lists, ended, strict=True):
            values[_FORWARDS], values[_BACKWARDS], values[_STEPS], values[_ZEROES] = counts
            values[_STEP_SECONDS], values[_WATCH_SECONDS] = now - then, own - own_then
            then, own_then = now, own
            for _, row, batch in losses:
                if row >= 0:
                    self._put(values, row, batch[0])
        if binding.functions is not None and not rows.has_devices:
            self._numbers.fold_lists(lists)
        else:
            for values in lists[:-1]:
                self._numbers.fold_list(values)
                rows.step_ended()
            self._numbers.fold_list(lists[-1])  # the session counts what the last has measured
        self._log(ended)

    def _log(self, ended: list[Ended]) -> None:
        since = time.time() - _now()
        points: dict[str, list[tuple[float, ...]]] = {}
        of_losses: dict[str, list[tuple[float, ...]]] = {}
        point_of, none = self._point_of, self._none
        for step, when, values, losses, *_ in ended:
            batches: dict[str, list[Any]] = {}
            for name, _, batch in losses:
                batches.setdefault(name, []).append(batch)
            for name, of_name in batches.items():
                of_loss = of_losses.get(name)
                if of_loss is None:
                    of_loss = of_losses[name] = points[names.loss_name(name)] = []
                point = point_of(of_name)
                if point is not None:
                    of_loss.append((step, since + when, *point))
            for name, index in self._logged if values is not none else ():
                value = values[index]
                if value is not None and value == value:
                    points.setdefault(name, []).append((step, since + when, value))
        for name, logged in points.items():
            self._journal.writer.log_points(name, logged, keep=names.KEPT_STEPS)

    def end_window(self) -> None:
        """What is still on a device is fetched."""
        self.pending.fetch()


class Pending:
    """Scalars that go to the log, fetched together when a window ends.

    Every one of them is a point of its own, so none may be dropped: there is no limit.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._transfers = Transfers(most=None)

    def __len__(self) -> int:
        return len(self._transfers)

    def add(self, name: str, value: torch.Tensor, *, keep: int = 0) -> None:
        """A scalar of this step, which becomes known later."""
        log = functools.partial(self._log, name, self._journal.step, keep)
        self.later(value.detach(), log)

    def later(self, numbers: torch.Tensor, told: Callable[[list[float]], None]) -> None:
        """Numbers on a device, and what to call once they are known."""
        self._transfers.keep(numbers, told)

    def fetch(self) -> None:
        """Fetches all: one copy per device, which waits for it."""
        if self._transfers:
            self._transfers.fetch()

    def _log(self, name: str, step: int, keep: int, numbers: list[float]) -> None:
        self._journal.writer.log(name, float(numbers[0]), step, keep=keep)
