"""Between the training thread and the writer thread: bounded, and nobody waits."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final

from nethook.runs.writing.waiting import LIGHT, Note, WaitingNotes, WaitingWindows
from nethook.stats.sheet import Layout, Sheet

CAPACITY: Final = 3
"""Windows that may wait for the writer. Each takes about 5 KB per series, most of it histograms."""


@dataclass(eq=False)
class Delivery:
    """What the writer thread takes out at once."""

    window: Sheet | None = None  # one at a time, so that the others go on waiting, not growing
    provisional: list[Sheet] = field(default_factory=list)
    catalogue: list[Any] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    findings: Any = None
    dropped: int = 0


class WindowQueue:
    """A queue of windows that never grows, and windows that were used and are empty again."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        # Entered by itself where the training thread does: it is written in C, so that an interrupt
        # cannot leave it locked. A Condition's own `__exit__` is not.
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.stopping = False  # the writer thread is to end
        self.stopped = False  # it has ended: nothing is taken in any more
        self.flushes = 0  # asked for
        self.flushed = 0  # done
        # Wakes the writer; putting into a SimpleQueue never waits.
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._capacity = capacity
        self._windows = WaitingWindows(capacity)
        self._provisional: dict[str, Sheet] = {}
        self._spare: list[Sheet] = []
        self._catalogue: list[Any] = []
        self._notes = WaitingNotes()
        self._findings: Any = None

    # The training thread

    def queued(self) -> int:
        """Windows that wait, as a part of the capacity: those without histograms count little."""
        return self._windows.used()

    def full(self) -> bool:
        """Whether a window that came now would have to wait with its sender."""
        return self.queued() >= self._capacity

    def put(self, window: Sheet, *, always: bool = False) -> bool:
        """Hand a window over; False when it is full, and the window stays with the sender."""
        queued = self.queued()
        if self.stopped or (not always and queued >= self._capacity):
            return False
        # Each line is atomic by itself. A lock here could be held by the writer while it waits for
        # the interpreter, and the training thread would wait for both.
        self._provisional.pop(window.phase, None)  # it is in this one
        self._windows.put(window)
        # Who is woken wants the interpreter: better for several windows at once than for each. The
        # writer looks by itself when it is time to commit.
        if always or 2 * queued + 2 >= self._capacity:
            self._bell.put(None)
        return True

    def put_provisional(self, window: Sheet) -> bool:
        """Hand over a copy of a window that is still open, in the place of an earlier copy."""
        if self.stopped or self.full():
            return False
        copy = self.empty(window.layout, window.phase, len(window.rows))
        window.copy_to(copy)
        self._provisional[window.phase] = copy
        self._bell.put(None)
        return True

    def put_catalogue(self, entry: Any) -> None:
        """Hand over a site or a series: never dropped, and as many as the model has."""
        with self.lock:
            if not self.stopped:
                self._catalogue.append(entry)

    def put_note(self, kind: str, note: Any) -> None:
        """Hand over a scalar, an event or a loss record."""
        if not self.stopped:
            self._notes.put((kind, note))

    def put_findings(self, findings: Any) -> None:
        """Hand over findings; only the newest count."""
        with self.lock:
            self._findings = findings

    def empty(self, layout: Layout, phase: str, rows: int | None = None) -> Sheet:
        """An empty window: one that was used before, if there is one with so many rows."""
        rows = len(layout) if rows is None else rows
        while self._spare:
            try:
                window = self._spare.pop()
            except IndexError:
                break
            if len(window.rows) == rows:
                window.fit(layout)
                window.phase = phase
                return window
        return Sheet(layout, phase, rows=rows)

    def ask_to_flush(self) -> int:
        """Ask for a flush; the number that `flushed` will have reached when it is done."""
        with self.lock:
            self.flushes += 1
            self._bell.put(None)
            return self.flushes

    def ask_to_stop(self) -> None:
        """Ask the writer thread to write what is left and end."""
        with self.lock:
            self.stopping = True
            self._bell.put(None)

    # The writer thread

    def sleep(self, seconds: float) -> None:
        """Wait until something is handed over or asked for, but no longer than this."""
        with suppress(Empty):
            self._bell.get(timeout=seconds)
            while True:  # one look sees everything that was handed over until now
                self._bell.get_nowait()

    def take(self, *, windows: bool = True) -> Delivery:
        """What is waiting, one window of it; none while windows are to wait a little longer."""
        delivery = Delivery()
        with self.lock:
            # The catalogue first: a window may be of series that were added a moment ago.
            delivery.catalogue, self._catalogue = self._catalogue, []
            if windows:
                delivery.window = self._windows.take()
                if not self._windows:  # what is open comes after all that is closed
                    delivery.provisional = list(self._provisional.values())
                    self._provisional = {}
            delivery.findings, self._findings = self._findings, None
            delivery.dropped = self._notes.take_dropped()
        delivery.notes = self._notes.take()
        return delivery

    def put_back(self, catalogue: list[Any], notes: list[Note]) -> None:
        """What was taken out and could not be written waits again, before all that came since.

        Without its catalogue a run could not be read. Notes wait as long as there is room.
        """
        with self.changed:
            self._catalogue = [*catalogue, *self._catalogue]
        self._notes.put_back(notes)

    def give_back(self, window: Sheet) -> None:
        """A window was written: empty it, here and not on the training thread, and keep it."""
        heavy = window.carries
        window.clear()
        # As many as are ever under way: making one anew costs the training thread a millisecond.
        if len(self._spare) < (self._capacity if heavy else LIGHT // 2):
            self._spare.append(window)

    def waiting(self) -> bool:
        """Whether anything is waiting that should be taken out soon."""
        return bool(self._windows or self._provisional)
