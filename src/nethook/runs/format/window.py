"""One window of a run in memory: what the training thread folds its steps into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nethook.stats.fields import BINS, Matrix, clear_rows, empty_rows


@dataclass(frozen=True)
class Layout:
    """The series that a window has room for: row `i` is series `i`, which has `units[i]` units."""

    units: tuple[int, ...] = ()

    @cached_property
    def offsets(self) -> list[int]:
        """Where the unit bits of each series begin; one more entry for the end of the last."""
        return [0, *np.cumsum(self.units, dtype=np.int64).tolist()]

    @cached_property
    def offset_table(self) -> npt.NDArray[np.int64]:
        """The same as an array, for the native kernel."""
        return np.array(self.offsets, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.units)


class Window:
    """The summaries of all series over some steps.

        window.rows[i]          # a row of `stats.fields`, for a kernel to write into
        window.histograms[i]    # its BINS counts
        window.bits_of(i)       # one byte per unit: 1 where it was ever active
        window.seen[i] += 1     # steps in which series i was measured
        window.add_step(step)   # once per step

    A window has one owner at a time, so its arrays need no lock:

        queue (spare, empty)  --window()-->  training thread  --submit()-->  queue
              ^                                                               |
              +--give_back(), which clears it--  writer thread  <--take()-----+

    `submit` gives an empty window for the full one, so nothing is copied on the training thread.
    Where the queue is full it gives the same window back: that goes on growing, and nobody waits.
    A reader who wants to see an open window gets a copy of it (`submit_provisional`).
    """

    __slots__ = (
        "addresses",
        "bits",
        "carries",
        "filled",
        "first_step",
        "histograms",
        "last_step",
        "layout",
        "phase",
        "rows",
        "seen",
        "steps",
        "why",
    )

    def __init__(self, layout: Layout, phase: str = "train") -> None:
        self.layout = layout
        self.phase = phase
        self.rows: Matrix = empty_rows(len(layout))
        self.seen: npt.NDArray[np.int64] = np.zeros(len(layout), dtype=np.int64)
        self.histograms: npt.NDArray[np.int64] = np.zeros((len(layout), BINS), dtype=np.int64)
        self.bits: npt.NDArray[np.uint8] = np.zeros(layout.offsets[-1], dtype=np.uint8)
        # Where these lie: none of them is ever made anew.
        self.addresses = (
            self.rows.ctypes.data,
            self.histograms.ctypes.data,
            self.seen.ctypes.data,
            self.bits.ctypes.data,
        )
        self.carries = True
        self._restart()

    def _restart(self) -> None:
        self.first_step = -1
        self.last_step = -1
        self.steps = 0
        self.filled = False  # whether there is anything in it, whatever `steps` says
        self.why = ""
        # Whether it has the histograms of its steps, and of those of windows before it that had
        # none: to move them is most of the work, and more of them than are kept are of no use.
        self.carries = True

    def add_step(self, step: int) -> None:
        """One more step is in this window."""
        if self.steps == 0:
            self.first_step = step
        self.last_step = step
        self.steps += 1

    def bits_of(self, series: int) -> npt.NDArray[np.uint8]:
        """The bytes of one series' units, to be written into."""
        return self.bits[self.layout.offsets[series] : self.layout.offsets[series + 1]]

    def clear(self) -> None:
        """Make the window empty, for its next use."""
        clear_rows(self.rows)
        self.seen[...] = 0
        if self.carries:
            self.histograms[...] = 0
        self.bits[...] = 0
        self._restart()

    def copy_to(self, other: Window) -> None:
        """Make `other`, which has the same layout, equal to this window."""
        other.rows[...] = self.rows
        other.seen[...] = self.seen
        other.histograms[...] = self.histograms
        other.carries, other.filled = self.carries, self.filled
        other.bits[...] = self.bits
        other.phase, other.why = self.phase, self.why
        other.first_step, other.last_step, other.steps = (
            self.first_step,
            self.last_step,
            self.steps,
        )

    def widened(self, layout: Layout) -> Window:
        """This window with room for the series that were added since it was made."""
        wide = Window(layout, self.phase)
        series = len(self.layout)
        wide.rows[:series] = self.rows
        wide.seen[:series] = self.seen
        wide.histograms[:series] = self.histograms
        wide.bits[: self.bits.size] = self.bits
        wide.first_step, wide.last_step = self.first_step, self.last_step
        wide.steps, wide.why = self.steps, self.why
        wide.carries, wide.filled = self.carries, self.filled
        return wide


def layout_of(units: Sequence[int]) -> Layout:
    """The layout of series with these numbers of units."""
    return Layout(tuple(int(count) for count in units))
