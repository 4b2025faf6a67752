"""The window of training that is open: steps are counted into it until it goes to the writer.

Who owns the numbers, and when:

    tensor --fold--> Sheet.rows --fill--> Window --submit--> the writer's thread --> the file
                     (training thread)    (ours)             (its own until `empty` reuses it)

- `series.Sheet` is the matrix that hooks fold into, made once: the native kernel has its address.
  Only the training thread touches it, and `fill` leaves it empty for the next window.
- `runs.Window` is the copy that travels. It is ours from `writer.window` or `submit`, which returns
  the next one, until `submit` hands it over; after that nobody on this thread may write to it.
- If the writer is behind, `submit` returns the same window: the next `fill` merges into it, and two
  windows have become one. After an interrupt inside `submit` we may hold a window that was handed
  over already, so `still_open` is asked before each `fill`.
- `_show` lends a copy of the sheet to readers (`keep=True`, `submit_provisional`): the sheet keeps
  its numbers, so that window is cleared before it is filled in earnest (`_is_copy`).

Histograms are the bulk of a window (5 KB of 5.4 KB per series), so windows that follow each other
within `CARRY` seconds leave them in the sheet for a later one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from nethook.runs.writing.windowing import WindowClock
from nethook.watching.journal import Journal

QUEUE: Final = 6
"""Windows that may wait for the writer's thread; each has 5.4 KB per series. The last two are for
evaluations (`step_ended`), which are rare and must not merge with training."""

CARRY: Final = 0.1
"""Seconds between two windows that have histograms, where windows are shorter than that. Ten
pictures per second are enough, and most of a window's bytes are histograms."""

DETAIL: Final = 16
"""Steps from the first on whose windows all have histograms, however short they are."""

QUIET: Final = 256
"""Steps in which nothing was due that go on in one window: a loss has its points one by one, and
there is nothing else to tell them apart by."""

QUIET_AWAY: Final = 16
"""The same where numbers wait on a device until a window ends: of these there may be
`stats.transfers.MOST` (64), and a step may add several."""

FACTS: Final = 1.0
"""Seconds from which on totals and facts about sites are written again: what a kill may cost."""

FACTS_SHARE: Final = 0.002
"""The share of the time that this may take: a large model has thousands of sites, and its facts are
written less often."""


class OpenWindow:
    """Says when a window ends, and hands it over.

    Arguments:
        journal: of the watch.
        fetch: called before a window is handed over: recorders fetch what is still on a device.
        write_facts: brings totals and sites in the file up to date.
    """

    def __init__(
        self,
        journal: Journal,
        fetch: Callable[[], None],
        write_facts: Callable[[], None],
    ) -> None:
        self._journal = journal
        self._fetch = fetch
        self._write_facts_now = write_facts
        self._window = journal.writer.window("train")
        self._clock = WindowClock(journal.step)
        self._steps = 0
        self._measured = False  # whether anything was due in a step of this window
        self._first = journal.step
        self._carried = time.perf_counter()
        self._facts_due = self._carried + FACTS
        self._counted = -1  # the last step that was
        self._is_copy = False  # whether the window holds what readers were shown, in the meantime

    def passed(self, first: int, steps: int) -> None:
        """So many steps, from the first on, had nothing due, and are in the window."""
        if self._steps == 0:
            self._first = first
        self._steps += steps

    def step_ended(self, step: int) -> None:
        """One more step is in the window, maybe its last."""
        journal = self._journal
        schedule, writer = journal.schedule, journal.writer
        if step != self._counted:  # an interrupt may have come before the end of this
            self._counted = step
            self._steps += 1
            if self._steps == 1:
                self._first = step
        if not self._measured:
            most = QUIET_AWAY if journal.train.rows.has_devices else QUIET
            self._measured = schedule.measures or self._steps >= most
        early, journal.eventful = journal.eventful, False
        ends = self._measured and self._clock.ends_with(step)
        if early and not ends:
            ends = self._clock.close_early()
        # The last two places in the queue are for evaluations, which are rare.
        if ends and schedule.budget.may_write() and writer.waiting < QUEUE - 2:
            self._hand_over(step, "event" if early else "")
            if time.perf_counter() >= self._facts_due:
                self._write_facts()
        elif writer.provisional_due:
            self._write_facts()
            self._show()

    def _write_facts(self) -> None:
        """Brings totals and sites up to date, for whoever reads now, or after a kill."""
        began = time.perf_counter()
        self._write_facts_now()
        now = time.perf_counter()
        self._facts_due = now + max(FACTS, (now - began) / FACTS_SHARE)

    def _hand_over(self, step: int, why: str) -> None:
        self._fetch()
        now = time.perf_counter()
        new = step - self._journal.clock.first_step < DETAIL
        carries = new or bool(why) or now - self._carried >= CARRY
        if carries:
            self._carried = now
        self._fill(step, keep=False, carries=carries)
        self._window = self._journal.writer.submit(self._window, why)
        self._measured = False
        self._clock.open(step + 1)

    def _fill(self, step: int, *, keep: bool, carries: bool = True) -> None:
        window = self._journal.writer.still_open(self._window)
        if self._is_copy:
            window.clear()
        self._is_copy = keep
        self._window = window = self._journal.train.fill(window, keep=keep, carries=carries)
        if window.steps == 0:
            window.first_step = self._first
        window.last_step = step
        window.steps += self._steps
        if not keep:
            self._steps = 0

    def _show(self) -> None:
        """Lets readers see the window as it is now."""
        if self._window.steps == 0:
            self._fill(self._journal.step, keep=True)
            self._journal.writer.submit_provisional(self._window)
            self._window.clear()
            self._is_copy = False

    def finish(self) -> None:
        """Watching ends: the window goes to the file, however short."""
        self._fetch()
        if self._steps:
            self._fill(self._journal.step - 1, keep=False)
            self._window = self._journal.hand_in(self._window)
