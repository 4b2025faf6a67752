"""The window of training that is open: steps are counted into its sheet until it is handed over.

Which steps share a window is decided here; `stats.sheet` tells who owns the numbers, and when. If
the writer is behind, the sheet stays open: the next steps are folded into it as well, and two
windows have become one. After an interrupt there may be a closed sheet that was not handed over
yet; it is when the next window ends.

Histograms are the bulk of a window (5 KB of 5.4 KB per series), so windows that follow each other
within `CARRY` seconds leave them in the sheet for a later one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from nethook.runs.writing.windowing import WindowClock
from nethook.stats.sheet import Sheet
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
        self._clock = WindowClock(journal.step)
        self._measured = False  # whether anything was due in a step of this window
        self._carried = time.perf_counter()
        self._facts_due = self._carried + FACTS
        self._counted = -1  # the last step that was
        self._closed: Sheet | None = None  # until it is handed over, and maybe after that
        self._left_behind = False  # whether the last one has left its histograms to the next

    def passed(self, first: int, steps: int) -> None:
        """So many steps, from the first on, had nothing due, and are in the window."""
        self._journal.train.sheet.add_steps(first, steps)

    def step_ended(self, step: int) -> None:
        """One more step is in the window, maybe its last."""
        journal = self._journal
        schedule, writer, sheet = journal.schedule, journal.writer, journal.train.sheet
        if step != self._counted:  # an interrupt may have come before the end of this
            sheet.add_step(step)
            self._counted = step
        if not self._measured:
            most = QUIET_AWAY if journal.train.has_devices else QUIET
            self._measured = schedule.measures or sheet.steps >= most
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
        self._hand_over_closed(why)
        if self._journal.train.sheet.steps:  # else an interrupt came after it was closed
            self._fetch()
            now = time.perf_counter()
            new = step - self._journal.clock.first_step < DETAIL
            carries = new or bool(why) or now - self._carried >= CARRY
            if carries:
                self._carried = now
            self._close(step, carries=carries)
            self._hand_over_closed(why)
        self._measured = False
        self._clock.open(step + 1)

    def _close(self, step: int, *, carries: bool = True) -> None:
        journal = self._journal
        journal.train.sheet.last_step = step
        self._left_behind = not carries
        self._closed = journal.catalogue.close(journal.train, "train", carries=carries)

    def _hand_over_closed(self, why: str, *, last: bool = False) -> None:
        journal, sheet = self._journal, self._closed
        if sheet is not None and sheet.waits("train"):
            journal.hand_in(sheet) if last else journal.writer.hand_over(sheet, why)
        self._closed = None

    def _show(self) -> None:
        """Lets readers see the window as it is now."""
        journal = self._journal
        journal.writer.submit_provisional(journal.catalogue.describe(journal.train))

    def finish(self) -> None:
        """Watching ends: the window goes to the file, however short."""
        self._fetch()
        self._hand_over_closed("end", last=True)
        if self._journal.train.sheet.steps or self._left_behind:
            self._close(self._journal.step - 1)
            self._hand_over_closed("end", last=True)
