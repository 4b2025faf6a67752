"""Histograms and unit bits over time: at most 256 spans of steps, neighbours merged exactly.

The last span is open: windows are added to it in memory, and it is written at every flush. A span
takes one window at first and a 128th of the windows so far later; when there are more than 256
spans, the two neighbours with the fewest windows become one.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nethook.runs.format.schema import HISTOGRAM_BLOCK, SPANS, key, number_of
from nethook.runs.format.sparse import pack_bits, pack_counts, unpack_bits, unpack_counts
from nethook.stats.fields import BINS
from nethook.stats.sheet import Layout, Sheet

Counts = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]


@dataclass
class Span:
    """Some windows in a row: the number of the first, how many, and their steps."""

    number: int
    windows: int
    first_step: int
    last_step: int


def smallest_pair(spans: list[Span]) -> int:
    """The place of the first of the two neighbours that have the fewest windows together."""
    sizes = [a.windows + b.windows for a, b in pairwise(spans)]
    return sizes.index(min(sizes))


class SpanTrack:
    """The spans of one phase. Everything is written in the transaction that the caller holds."""

    def __init__(self, phase: str, connection: sqlite3.Connection, most: int = SPANS) -> None:
        self._phase = phase
        self._connection = connection
        self._most = most
        self._open: Span | None = None
        self._carried = True
        self._layout = Layout()
        self._counts: Counts = np.zeros((0, BINS), dtype=np.int64)
        self._bits: Bits = np.zeros(0, dtype=np.uint8)
        self._unwritten = False
        # What the file has already is taken up; the next window begins a new span.
        stored = connection.execute(
            "SELECT key, windows, first_step, last_step FROM spans WHERE key >= ? AND key < ? "
            "ORDER BY key",
            (key(phase), key(phase, block=1)),
        )
        self._closed = [Span(number_of(packed), *rest) for packed, *rest in stored.fetchall()]

    def add(self, number: int, window: Sheet) -> None:
        """Fold a closed window in; `number` is its number in the phase."""
        self._grow(window.layout)
        # The histograms of windows that carry none are in one that follows, and in its span.
        most = max(1, number // (self._most // 2))
        if self._open is not None and self._carried and self._open.windows >= most:
            self._close()
        if self._open is None:
            self._open = Span(number, 0, window.first_step, window.last_step)
        if window.carries:
            for rows, series in window.runs:
                self._counts[series] += window.histograms[rows]
        self._carried = window.carries
        self._bits[: window.bits.size] |= window.bits
        self._open.windows += 1
        self._open.last_step = window.last_step
        self._unwritten = True

    def add_rest(self, window: Sheet) -> None:
        """Fold in the histograms that the last windows have left behind; it has no steps itself."""
        if self._open is None:
            return
        self._grow(window.layout)
        for rows, series in window.runs:
            self._counts[series] += window.histograms[rows]
        self._carried = self._unwritten = True

    def show(self, number: int, window: Sheet) -> None:
        """Write the open span with a window in it that is not closed yet."""
        self._grow(window.layout)
        if self._open is None:
            self._open = Span(number, 0, window.first_step, window.last_step)
        counts, bits = self._counts.copy(), self._bits.copy()
        for rows, series in window.runs:
            counts[series] += window.histograms[rows]
        bits[: window.bits.size] |= window.bits
        self._write(self._open, counts, bits, window.last_step)
        self._unwritten = False

    def write(self) -> None:
        """Write the open span as it is now, in the place of what was written of it before."""
        if self._open is not None and self._unwritten:
            self._write(self._open, self._counts, self._bits, self._open.last_step)
            self._unwritten = False

    def _close(self) -> None:
        self.write()
        assert self._open is not None
        self._closed.append(self._open)
        self._open = None
        self._counts[...] = 0
        self._bits[...] = 0
        while len(self._closed) >= self._most:  # the next one is one more
            self._merge(smallest_pair(self._closed))

    def _merge(self, index: int) -> None:
        """Make one span of span `index` and its right neighbour."""
        left, right = self._closed[index], self._closed.pop(index + 1)
        left.windows += right.windows
        left.last_step = right.last_step
        self._put_span(left, left.last_step)
        self._connection.execute(
            "DELETE FROM spans WHERE key = ?", (key(self._phase, right.number),)
        )
        for block in range((len(self._layout) + HISTOGRAM_BLOCK - 1) // HISTOGRAM_BLOCK):
            if packed := self._take("histograms", block, left, right):
                counts = sum((unpack_counts(data) for data in packed[1:]), unpack_counts(packed[0]))
                self._put("histograms", block, left, pack_counts(counts))
            if packed := self._take("unit_bits", block, left, right):
                bits = np.zeros(len(self._bits[self._units(block)]), dtype=np.uint8)
                for data in packed:
                    bits |= unpack_bits(data, len(bits))
                self._put("unit_bits", block, left, pack_bits(bits))

    def _take(self, table: str, block: int, left: Span, right: Span) -> list[bytes]:
        """What a table has of a block in two spans; it is removed from the right one."""
        keys = [key(self._phase, span.number, block=block) for span in (left, right)]
        stored = self._connection.execute(f"SELECT data FROM {table} WHERE key IN (?, ?)", keys)
        data = [row[0] for row in stored.fetchall()]
        self._connection.execute(f"DELETE FROM {table} WHERE key = ?", keys[1:])
        return data

    def _write(self, span: Span, counts: Counts, bits: Bits, last_step: int) -> None:
        self._put_span(span, last_step)
        for block in range((len(counts) + HISTOGRAM_BLOCK - 1) // HISTOGRAM_BLOCK):
            block_counts = counts[block * HISTOGRAM_BLOCK : (block + 1) * HISTOGRAM_BLOCK]
            if block_counts.any():
                self._put("histograms", block, span, pack_counts(block_counts))
            units = bits[self._units(block)]
            if units.any():
                self._put("unit_bits", block, span, pack_bits(units))

    def _put_span(self, span: Span, last_step: int) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO spans VALUES (?, ?, ?, ?)",
            (key(self._phase, span.number), span.first_step, last_step, max(1, span.windows)),
        )

    def _put(self, table: str, block: int, span: Span, data: bytes) -> None:
        self._connection.execute(
            f"INSERT OR REPLACE INTO {table} VALUES (?, ?)",
            (key(self._phase, span.number, block=block), data),
        )

    def _units(self, block: int) -> slice:
        """Where the unit bits of a block are."""
        offsets, last = self._layout.offsets, len(self._layout)
        return slice(
            offsets[min(block * HISTOGRAM_BLOCK, last)],
            offsets[min((block + 1) * HISTOGRAM_BLOCK, last)],
        )

    def _grow(self, layout: Layout) -> None:
        """Make room for series that came later."""
        if len(layout) > len(self._layout):
            more = len(layout) - len(self._layout)
            self._counts = np.concatenate((self._counts, np.zeros((more, BINS), dtype=np.int64)))
            self._layout = layout
            bits = np.zeros(layout.offsets[-1], dtype=np.uint8)
            bits[: len(self._bits)] = self._bits
            self._bits = bits
