"""The time that examinations have taken, and what is left of it.

It is neither training's nor watching's: it has a number of its own, and a limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from nethook.watching.costs import OTHER
from nethook.watching.journal import Journal

if TYPE_CHECKING:
    from nethook.examining.limits import Deadline

COPIED: Final = 1 << 30
"""Bytes of a model that are copied in a second, at least."""


class TimeLeft:
    """Counts seconds, and says how many are left.

    Arguments:
        journal: its schedule leaves these seconds out of what watching may cost.
    """

    def __init__(self, journal: Journal) -> None:
        self._watching = journal
        self._loading = 0.0
        self._worked = 0.0  # seconds of this thread, which the limit is of
        self.seconds = 0.0
        """That all of it has taken."""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """A block whose time is that of examinations."""
        began, worked = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self._worked += time.thread_time() - worked
            seconds = time.perf_counter() - began
            self.took(seconds)
            # The hook adds all of its time to what watching has cost.
            self._watching.schedule.spent[OTHER] -= seconds

    def took(self, seconds: float) -> None:
        """Examinations took so long."""
        self.seconds += seconds
        self._watching.schedule.budget.leave_out(seconds)

    def load(self) -> None:
        """Imports what examines, when it is first needed; that is no part of the limit."""
        if self._loading == 0.0:
            began, worked = time.perf_counter(), time.thread_time()
            from nethook.examining import activations, examine, keeping  # noqa: F401

            examine.every_experiment()
            self._loading = time.perf_counter() - began
            self._worked -= time.thread_time() - worked

    def left(self) -> float:
        """Seconds of work that examinations may still take."""
        from nethook.examining.limits import seconds_left

        return seconds_left(self._watching.schedule.budget.elapsed, self._worked)

    def deadline(self) -> Deadline:
        """When what begins now has to end."""
        from nethook.examining.limits import CLOCK, Deadline

        return Deadline(self.left(), max(0.0, CLOCK - (self.seconds - self._loading)))

    def why_too_slow(self, size: int, forward: float) -> str:
        """Why there is no time for a copy and a run of it, in words; "" where there is.

        Arguments:
            size: bytes that are copied.
            forward: seconds that a call of the model takes.
        """
        left = self.left()
        wanted = 2 * forward + size / COPIED
        if wanted <= left:
            return ""
        return f"one pass takes about {wanted:.1f} s, and {left:.1f} s may be used"
