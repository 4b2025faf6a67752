"""What waits for the writer thread: windows that are over, and notes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from nethook.stats.sheet import Sheet

LIGHT: Final = 64
"""Windows without histograms that may wait: so short are they that the writer takes many at once.
Each takes 152 bytes per series, and a byte per unit."""

MAX_NOTES: Final = 1 << 16
"""Scalars, events and loss records that may wait; when there are more, the oldest go."""

Note = tuple[str, Any]
"""Its kind, and what it says."""


class WaitingWindows:
    """Windows that are over, the oldest first.

    Those with histograms are counted when they are put in and when they are taken out, each by one
    thread alone, so that neither waits for the other.

    Arguments:
        capacity: windows with histograms that may wait.
    """

    def __init__(self, capacity: int) -> None:
        self._windows: deque[Sheet] = deque()
        self._capacity = capacity
        self._heavy_put = 0
        self._heavy_taken = 0

    def __bool__(self) -> bool:
        return bool(self._windows)

    def used(self) -> int:
        """How much of the capacity they take: those without histograms count little."""
        light, waiting = max(LIGHT, self._capacity), len(self._windows)
        return max(self._heavy_put - self._heavy_taken, -(-waiting * self._capacity // light))

    def put(self, window: Sheet) -> None:
        """One more."""
        self._heavy_put += window.carries
        # Nothing is called between these two: an interrupt comes before both or after.
        window.closed = False
        self._windows.append(window)

    def take(self) -> Sheet | None:
        """The oldest; None where there is none."""
        window = self._windows.popleft() if self._windows else None
        self._heavy_taken += window is not None and window.carries
        return window


class WaitingNotes:
    """Scalars, events and loss records, the oldest first; no lock is on the way of a step."""

    def __init__(self) -> None:
        self._notes: deque[Note] = deque()
        self._dropped = 0

    def put(self, note: Note) -> None:
        """One more; the oldest goes where there are too many."""
        self._notes.append(note)  # atomic
        if len(self._notes) > MAX_NOTES:
            try:
                self._notes.popleft()
                self._dropped += 1
            except IndexError:
                pass  # the writer took them all in between

    def put_back(self, notes: Sequence[Note]) -> None:
        """Notes that could not be written, before all that came since, as long as there is room."""
        room = max(0, MAX_NOTES - len(self._notes))
        kept = notes[max(0, len(notes) - room) :]
        self._notes.extendleft(reversed(kept))
        self._dropped += len(notes) - len(kept)

    def take(self) -> list[Note]:
        """All of them."""
        notes = []
        while self._notes:
            notes.append(self._notes.popleft())
        return notes

    def take_dropped(self) -> int:
        """How many are gone since the last time."""
        dropped, self._dropped = self._dropped, 0
        return dropped
