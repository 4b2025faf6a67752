"""The order of the loop's calls: an event at the first step, and whenever it changes.

Hooks only append the name of a call to a list, which takes no function of Python's. What that makes
of a step is looked at later, for all steps that have ended since.
"""

from __future__ import annotations

from typing import Final

from nethook.hooks.process.source_line import line_of_script
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter

# What comes after a step belongs to it until one of these begins the next.
_BEGINS = frozenset({"zero_grad", "forward", "backward"})

MOST: Final = 4096
"""Calls that are kept until somebody looks at them; a loop may have no steps at all."""


class CallOrder:
    """Collects the calls of a step."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self.heard: list[str | int] = []
        """Calls, and the number of each step where it has ended, not looked at yet."""
        self.note = self.heard.append
        """A call of the loop; or the number of a step that has ended. What is called in every step
        appends to `heard` itself: Python finds a method of a list more quickly than this."""
        self._looked = 0  # how many of these were looked at
        self._calls: list[str] = []
        self._known: set[tuple[str, ...]] = set()
        self._before: list[str] = []  # the calls of the step before
        self._place = 0  # how many of them came before its end
        self._last: tuple[str, ...] = ()
        self._ended = -1  # the step whose calls these are, once it has ended
        self.scaler = False
        self.lines: dict[str, str] = {}
        """Where calls that may stand in the wrong place were made first: `train.py:42`."""

    def note_with_line(self, call: str) -> None:
        """A call of the loop; the first time also the line of the script that makes it."""
        self.heard.append(call)
        if call not in self.lines:
            where = line_of_script()
            self.lines[call] = f"{where.file}:{where.line}" if where.line else ""

    @property
    def ended(self) -> int:
        """The last step that has ended, if no call was heard since that belongs to the next."""
        self.settle()
        return self._ended

    def step_ended(self, step: int) -> None:
        """The step that these calls belong to has ended."""
        self.note(step)
        self.settle()

    def settle(self) -> None:
        """Tells of an order that is new, in what was heard since the last time."""
        heard = self.heard
        while self._looked < len(heard):
            if self._ended >= 0 and self._calls == self._before and self._again():
                continue
            self._sort_in(heard[self._looked])
            self._looked += 1  # not before: to be sorted in twice makes no difference
        fresh: list[str | int] = []
        # Nothing is called from here on: Python raises interrupts where something is.
        self.heard, self.note, self._looked = fresh, fresh.append, 0

    def _again(self) -> bool:
        """Whether the step that comes next has the calls of the two before it, as nearly always.

        Then it is passed over: all of it at once.
        """
        heard, before, place, start = self.heard, self._before, self._place, self._looked
        end, after = start + place, start + len(before) + 1
        if after > len(heard) or heard[start] not in _BEGINS:
            return False
        step = heard[end]
        if not isinstance(step, int) or heard[start:end] != before[:place]:
            return False
        if heard[end + 1 : after] != before[place:]:
            return False
        # Nothing is called from here on: either both or none.
        self._ended = step
        self._looked = after
        return True

    def _sort_in(self, call: str | int) -> None:
        if isinstance(call, int):
            if self._ended < 0:
                self._ended = call
                self._place = len(self._calls)
            return
        if self._ended >= 0 and call in _BEGINS:
            self._tell()
        if not self._calls or self._calls[-1] != call:
            self._calls.append(call)

    def finish(self) -> None:
        """Watching ends."""
        self.settle()
        if self._calls:
            self._ended = max(0, self._ended)
            self._tell()

    def _tell(self) -> None:
        step, self._ended = self._ended, -1
        if self._calls == self._before:  # as nearly always
            self._calls = []
            return
        self._before, self._calls = self._calls, []
        order = tuple(_shortened(self._before))
        if order == self._last:
            return
        self._last = order
        if order in self._known:
            return  # loops that take turns (every 8th batch is logged) are no news
        self._known.add(order)
        if len(self._known) <= 64:
            self._writer.event(
                names.ORDER,
                step,
                f"the order of calls: {', '.join(order)}",
                "",
                {"calls": list(order), "scaler": self.scaler, "lines": dict(self.lines)},
            )


def _shortened(calls: list[str]) -> list[str]:
    """Pairs of calls that are repeated (micro-batches) stand once: forward, backward."""
    short: list[str] = []
    position = 0
    while position < len(calls):
        pair = calls[position : position + 2]
        while len(pair) == 2 and calls[position + 2 : position + 4] == pair:
            position += 2
        short.append(calls[position])
        position += 1
    return short
