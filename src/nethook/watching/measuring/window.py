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
from typing import Final

from nethook.runs.writing.windowing import WindowClock
from nethook.stats.sheet import Sheet
from nethook.watching.measuring.needs import WindowSession

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
    """Says when a window ends, and hands it over."""

    def __init__(self, session: WindowSession) -> None:
        self._session = session
        self._clock = WindowClock(session.step)
        self._early = False
        self._measured = False  # whether anything was due in a step of this window
        self._carried = time.perf_counter()
        self._facts_due = self._carried + FACTS
        self._counted = -1  # the last step that was
        self._closed: Sheet | None = None  # until it is handed over, and maybe after that

    def close_early(self) -> None:
        """Something happened in this step: the window ends with it."""
        self._early = True

    @property
    def early(self) -> bool:
        """Whether something has happened in this step."""
        return self._early

    def passed(self, first: int, steps: int) -> None:
        """So many steps, from the first on, were quiet, and are in the window."""
        self._session.train.sheet.add_steps(first, steps)

    def step_ended(self, step: int) -> None:
        """One more step is in the window, maybe its last."""
        session = self._session
        sheet = session.train.sheet
        if step != self._counted:  # an interrupt may have come before the end of this
            sheet.add_step(step)
            self._counted = step
        if not self._measured:
            most = QUIET_AWAY if session.train.has_devices else QUIET
            self._measured = session.measures or sheet.steps >= most
        early, self._early = self._early, False
        ends = self._measured and self._clock.ends_with(step)
        if early and not ends:
            ends = self._clock.close_early()
        # The last two places in the queue are for evaluations, which are rare.
        if ends and session.budget.may_write() and session.writer.waiting < QUEUE - 2:
            self._hand_over(step, "event" if early else "")
            if time.perf_counter() >= self._facts_due:
                self._write_facts()
        elif session.writer.provisional_due:
            self._write_facts()
            self._show()

    def _write_facts(self) -> None:
        """Brings totals and sites up to date, for whoever reads now, or after a kill."""
        began = time.perf_counter()
        self._session.write_facts()
        now = time.perf_counter()
        self._facts_due = now + max(FACTS, (now - began) / FACTS_SHARE)

    def _hand_over(self, step: int, why: str) -> None:
        self._hand_over_closed(why)
        if self._session.train.sheet.steps:  # else an interrupt came after it was closed
            self._fetch()
            now = time.perf_counter()
            new = step - self._session.first_step < DETAIL
            carries = new or bool(why) or now - self._carried >= CARRY
            if carries:
                self._carried = now
            self._close(step, carries=carries)
            self._hand_over_closed(why)
        self._session.device_flags.window += 1
        self._measured = False
        self._clock.open(step + 1)

    def _close(self, step: int, *, carries: bool = True) -> None:
        session = self._session
        session.train.sheet.last_step = step
        self._closed = session.catalogue.close(session.train, "train", carries=carries)

    def _hand_over_closed(self, why: str, *, last: bool = False) -> None:
        session, sheet = self._session, self._closed
        if sheet is not None and sheet.waits("train"):
            session.hand_in(sheet) if last else session.writer.hand_over(sheet, why)
        self._closed = None

    def _fetch(self) -> None:
        """What is still on a device is fetched."""
        session = self._session
        session.pending.fetch()
        session.losses.fetch()
        session.flight.fetch()
        session.device_flags.fetch()
        for told in self._session.on_window:
            told()

    def _show(self) -> None:
        """Lets readers see the window as it is now."""
        session = self._session
        session.writer.submit_provisional(session.catalogue.describe(session.train))

    def finish(self) -> None:
        """Watching ends: the window goes to the file, however short."""
        self._fetch()
        self._session.device_flags.flush()
        self._hand_over_closed("end", last=True)
        if self._session.train.sheet.steps:
            self._close(self._session.step - 1)
            self._hand_over_closed("end", last=True)
