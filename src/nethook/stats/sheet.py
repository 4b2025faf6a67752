"""A sheet: the numbers of all series over some steps, from the first fold to the packed record.

Who owns its arrays, and when:

    empty --writer.window()--> open --Rows.turn()--> closed --writer.hand_over()--> handed over
      ^                                                                                  |
      +------------------------- give_back(), which clears it ---------------------------+

- **open**: hooks fold into it, in the training thread alone, through `rows.Rows`. When a window
  ends nothing is copied: the sheet itself is the window, and an empty one is open in its place.
- **closed**: it is its closer's until the writer takes it. Evaluations merge those of several
  passes. One that the writer has no room for stays where it is, and nobody waits.
- **handed over**: the writer's thread packs it, clears it, and keeps it for `writer.window()`.

So no array is ever in the hands of two threads, and none needs a lock. A reader who wants to see an
open sheet gets a copy of it (`writer.submit_provisional`).

Its rows are in the order in which they are folded into, which is not that of the series in the
file: `order` says which is which, and `in_order` is asked where records are packed.

Histograms are the bulk of a sheet (5 KB of 5.4 KB per series). One that is closed without them
(`carries`) leaves them to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nethook.stats.fields import (
    BINS,
    INDEX,
    Counts,
    Matrix,
    clear_rows,
    empty_rows,
    merge_rows,
)

_TENSORS, _SKIPPED = INDEX["tensors"], INDEX["skipped"]


@dataclass(frozen=True)
class Layout:
    """The series that there is room for: series `i` has `units[i]` units."""

    units: tuple[int, ...] = ()

    @cached_property
    def offsets(self) -> list[int]:
        """Where the unit bits of each series begin; one more entry for the end of the last."""
        return [0, *np.cumsum(self.units, dtype=np.int64).tolist()]

    @cached_property
    def offset_table(self) -> Counts:
        """The same as an array, for the native kernel."""
        return np.array(self.offsets, dtype=np.int64)

    @cached_property
    def offset_address(self) -> int:
        """Where that lies."""
        return int(self.offset_table.ctypes.data)

    def __len__(self) -> int:
        return len(self.units)


class Order:
    """Which series each row is; negative: none, and nothing is in it.

    Arguments:
        series: of each row; it is not changed any more.
    """

    def __init__(self, series: Counts) -> None:
        self.series = series
        self.address: int = series.ctypes.data

    def __len__(self) -> int:
        return len(self.series)

    @cached_property
    def runs(self) -> list[tuple[slice, slice]]:
        """Rows, and the series that they are: neighbours that are neighbours there, too.

        They are few, since series come to the file in the order of their rows.
        """
        rows = np.flatnonzero(self.series >= 0)
        if not len(rows):
            return []
        series = self.series[rows]
        breaks = np.flatnonzero((np.diff(rows) != 1) | (np.diff(series) != 1)) + 1
        pieces = zip(np.split(rows, breaks), np.split(series, breaks), strict=True)
        return [
            (slice(int(a[0]), int(a[-1]) + 1), slice(int(b[0]), int(b[-1]) + 1)) for a, b in pieces
        ]


class Sheet:
    """The summaries of all series over some steps.

        sheet.rows[i]          # a row of `stats.fields`, for a kernel to write into
        sheet.histograms[i]    # its BINS counts
        sheet.seen[i] += 1     # steps in which row i was measured
        sheet.bits_of(series)  # one byte per unit: 1 where it was ever active
        sheet.add_step(step)   # once per step

    Arguments:
        layout: the series of the file, as far as they are known.
        phase: what the steps are: `train`, `eval` or `aux`.
        rows: how many rows; as many as the layout has series if it is not given.

    Attributes:
        order: which series each row is; None: row `i` is series `i`.
        carries: whether it has the histograms of its steps, and those that sheets before it have
            left to it.
        closed: whether it waits to be handed over.

    Cost: 5.4 KB per row, and a byte per unit.
    """

    __slots__ = (
        "bits", "bits_address", "carries", "closed", "first_step", "histograms",
        "histograms_address", "last_step", "layout", "order", "phase", "rows", "rows_address",
        "seen", "seen_address", "steps", "why",
    )  # fmt: skip

    def __init__(
        self, layout: Layout | None = None, phase: str = "train", *, rows: int | None = None
    ) -> None:
        self.layout = layout or Layout()
        self.phase = phase
        rows = len(self.layout) if rows is None else rows
        self.rows: Matrix = empty_rows(rows)
        self.seen: Counts = np.zeros(rows, dtype=np.int64)
        self.histograms: Counts = np.zeros((rows, BINS), dtype=np.int64)
        self.bits: npt.NDArray[np.uint8] = np.zeros(self.layout.offsets[-1], dtype=np.uint8)
        # Where these lie, for the native kernel. Bits alone are made anew, where there are more.
        self.bits_address: int = self.bits.ctypes.data
        self.rows_address: int = self.rows.ctypes.data
        self.seen_address: int = self.seen.ctypes.data
        self.histograms_address: int = self.histograms.ctypes.data
        self._restart()

    def _restart(self) -> None:
        self.first_step = -1
        self.last_step = -1
        self.steps = 0
        self.why = ""
        self.order: Order | None = None
        self.carries = True
        self.closed = False

    # While it is open

    def add_step(self, step: int) -> None:
        """One more step is in this sheet."""
        self.add_steps(step, 1)

    def add_steps(self, first: int, steps: int) -> None:
        """So many steps more, one after the other."""
        if self.steps == 0:
            self.first_step = first
        self.last_step = first + steps - 1
        self.steps += steps

    def touched(self) -> npt.NDArray[np.bool_]:
        """Of each row, whether anything was measured there."""
        found: npt.NDArray[np.bool_] = self.rows[:, _TENSORS] + self.rows[:, _SKIPPED] > 0
        return found

    def bits_of(self, series: int) -> npt.NDArray[np.uint8]:
        """The bytes of one series' units, to be written into."""
        return self.bits[self.layout.offsets[series] : self.layout.offsets[series + 1]]

    def fit(self, layout: Layout) -> None:
        """Make room for the unit bits of series that have come since."""
        if self.layout is not layout:
            bits = np.zeros(layout.offsets[-1], dtype=np.uint8)
            common = min(bits.size, self.bits.size)
            bits[:common] = self.bits[:common]
            self.bits_address = bits.ctypes.data
            self.bits, self.layout = bits, layout

    def leave_histograms(self, to: Sheet) -> None:
        """Give the histograms to another sheet, which is empty."""
        mine, address = self.histograms, self.histograms_address
        # No call in between: an interrupt would leave an address of the other's.
        self.histograms, self.histograms_address = to.histograms, to.histograms_address
        to.histograms, to.histograms_address = mine, address
        self.carries = False

    # Once it is closed

    def waits(self, phase: str) -> bool:
        """Whether it is still to be handed over by the one that closed it in this phase.

        After an interrupt somebody may hold a sheet that is with the writer, or open elsewhere.
        """
        return self.closed and self.phase == phase

    @property
    def used(self) -> int:
        """The rows that anything can be in."""
        return len(self.rows) if self.order is None else len(self.order)

    @property
    def runs(self) -> list[tuple[slice, slice]]:
        """Rows, and the series that they are."""
        whole = slice(0, len(self.rows))
        return [(whole, whole)] if self.order is None else self.order.runs

    def in_order(self) -> tuple[Matrix, Counts]:
        """Rows, and the steps in which they were measured, of each series of the layout."""
        if self.order is None:
            return self.rows, self.seen
        rows, seen = empty_rows(len(self.layout)), np.zeros(len(self.layout), np.int64)
        for mine, series in self.order.runs:
            rows[series] = self.rows[mine]
            seen[series] = self.seen[mine]
        # Devices tell their tensors at the end of a window: what came at all was seen in it.
        there = rows[:, _TENSORS] + rows[:, _SKIPPED] > 0
        return rows, np.where(there, np.maximum(seen, 1), 0)

    def merge(self, other: Sheet) -> None:
        """Take in the steps of another sheet, of the same rows: two windows become one."""
        there = np.flatnonzero(other.touched())
        self.rows[there] = merge_rows(self.rows[there], other.rows[there])
        self.seen[there] += np.maximum(other.seen[there], 1)
        self.histograms[: other.used] += other.histograms[: other.used]
        self.fit(other.layout)
        self.bits |= other.bits
        self.order = other.order
        if other.steps:
            self.add_steps(other.first_step, other.steps)
            self.last_step = other.last_step

    def copy_to(self, other: Sheet) -> None:
        """Make `other`, which has as many rows and is empty, equal to this sheet."""
        used = self.used
        other.rows[:used] = self.rows[:used]
        other.seen[:used] = self.seen[:used]
        other.histograms[:used] = self.histograms[:used]
        other.fit(self.layout)
        other.bits[...] = self.bits
        other.order, other.carries = self.order, self.carries
        other.phase, other.why = self.phase, self.why
        other.first_step, other.last_step, other.steps = (
            self.first_step,
            self.last_step,
            self.steps,
        )

    def widened(self, layout: Layout) -> Sheet:
        """This sheet with a row for each series that was added since it was made."""
        wide = Sheet(layout, self.phase)
        self.copy_to(wide)
        wide.fit(layout)
        return wide

    def clear(self) -> None:
        """Make the sheet empty, for its next use."""
        used = self.used
        clear_rows(self.rows[:used])
        self.seen[:used] = 0
        if self.carries:
            self.histograms[:used] = 0
        self.bits[...] = 0
        self._restart()


def layout_of(units: Sequence[int]) -> Layout:
    """The layout of series with these numbers of units."""
    return Layout(tuple(int(count) for count in units))
