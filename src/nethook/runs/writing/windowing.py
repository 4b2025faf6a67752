"""Which step belongs to which window."""

from __future__ import annotations

from typing import Final

GROWTH: Final = 1000
"""A window is this part of the steps so far: one step at first, a thousand at the millionth."""

EARLY: Final = 1000
"""Windows that events may close early: a loop with an event per step must not fill the file."""


def window_end(first: int) -> int:
    """The step at which a window that begins with step `first` is over."""
    return first + max(1, first // GROWTH)


class WindowClock:
    """Says when the open window ends, as steps go by.

        clock = WindowClock()
        ...
        if clock.ends_with(step):
            window = writer.submit(window)
            clock.open(step + 1)

    The first thousand steps are windows of one step; after that a window is a thousandth of the
    steps so far, which makes 1,000 × (1 + 1 + 1/2 + … + 1/999), or 8,488 windows in a million.
    Evaluation passes have a clock of their own, which counts passes.
    """

    def __init__(self, first: int = 0) -> None:
        self._early = EARLY
        self.open(first)

    def open(self, first: int) -> None:
        """A new window begins with step `first`."""
        self.first = first
        self.end = window_end(first)

    def ends_with(self, step: int) -> bool:
        """Whether `step` is the last one of the open window."""
        return step + 1 >= self.end

    def close_early(self) -> bool:
        """Whether an event may close the open window now; each time it may, it uses one up."""
        if self._early == 0:
            return False
        self._early -= 1
        return True
