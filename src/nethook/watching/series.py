"""The series of a watch, and the rows that they are folded into until a window ends.

Every series has one row, the same in the sheet of every phase. It becomes a series of the file when
it is first measured: only then is known how many units it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nethook.runs.format.window import Window
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX, clear_rows, empty_rows, merge_rows
from nethook.stats.native import binding
from nethook.stats.rows import Rows, Slot

HISTOGRAM_LIMIT: Final = 1024
"""Elements of one tensor that its histogram is read from; the next tensor gives others."""

_TENSORS: Final = INDEX["tensors"]
_SKIPPED: Final = INDEX["skipped"]


class Catalogue:
    """Which row belongs to which series, and which series of the file that is.

    Arguments:
        writer: where series are added when they are first measured.
        capacity: rows; a series beyond them is not recorded.
    """

    def __init__(self, writer: RunWriter, capacity: int) -> None:
        self.writer = writer
        self.capacity = capacity
        self.keys: list[tuple[str, str, Mapping[str, object]]] = []
        self.ids = np.full(capacity, -1, np.int64)
        self._rows: dict[tuple[str, str], int] = {}

    def row(
        self, address: str, quantity: str, info: Mapping[str, object] | None = None
    ) -> int | None:
        """The row of a series; None where there is no more room."""
        row = self._rows.get((address, quantity))
        if row is None and len(self.keys) < self.capacity:
            row = self._rows[address, quantity] = len(self.keys)
            self.keys.append((address, quantity, info or {}))
        elif row is not None and info is not None and self.ids[row] < 0:
            self.keys[row] = (address, quantity, info)  # known better before the file has it
        return row

    def identify(self, rows: Any, slots: Mapping[int, Slot]) -> None:
        """Adds those of these rows to the file that it does not have yet."""
        for row in rows[self.ids[rows] < 0].tolist():
            address, quantity, info = self.keys[row]
            slot = slots.get(row)
            units = 0 if slot is None or slot.bits is None else len(slot.bits)
            self.ids[row] = self.writer.add_series(address, quantity, units=units, info=info)


class Sheet:
    """What one phase has measured since its last window: a row for every series.

    Cost: 5.5 KB per series, and a byte per unit.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.rows = Rows(catalogue.capacity, limit=HISTOGRAM_LIMIT)
        self.seen = np.zeros(catalogue.capacity, np.int64)
        self._before = np.zeros(catalogue.capacity)
        self._tensors = self.rows.matrix[:, _TENSORS]
        self.counted = (self._before.ctypes.data, self.seen.ctypes.data)
        """Where the kernel counts which series were measured in a step."""
        # What the native kernel moves: `Move` in windows.cpp.
        self._slots: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._words = np.zeros(15, np.int64)
        self._words_address = self._words.ctypes.data
        self._words[:5] = (
            self.rows.matrix_address, self.rows.histograms_address, self._before.ctypes.data,
            self.seen.ctypes.data, catalogue.ids.ctypes.data,
        )  # fmt: skip

    def slot(
        self,
        row: int,
        *,
        unit_dim: int | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> Slot:
        """The place that tensors of a series are folded into."""
        return self.rows.slot(row, unit_dim=unit_dim, bounds=bounds)

    def step_ended(self, _: int = 0) -> None:
        """One more step: counts which series were measured in it."""
        used = len(self.catalogue.keys)
        if binding.functions is not None and not self.rows.has_devices:
            binding.functions.count_seen(self.rows.matrix_address, *self.counted, used)
            return
        tensors = self._tensors[:used] + self.rows.away[:used]
        self.seen[:used] += tensors > self._before[:used]
        self._before[:used] = tensors

    def fill(self, window: Window, *, keep: bool = False, carries: bool = True) -> Window:
        """Moves everything into a window, or copies it; the window may have grown.

        What the window has already is merged with it. Without `carries` histograms may wait for
        one of the next windows.
        """
        rows = self.rows
        rows.collect()
        used = len(self.catalogue.keys)
        filled = window.filled or window.steps > 0
        if not (filled or keep) and binding.functions is not None:
            return self._move(window, used, carries)
        carries = True
        touched = rows.matrix[:used, _TENSORS] + rows.matrix[:used, _SKIPPED] > 0
        touched_rows = np.flatnonzero(touched)
        self.catalogue.identify(touched_rows, rows.slots)
        window = self.catalogue.writer.widen(window)
        ids = self.catalogue.ids[touched_rows]
        seen = np.maximum(self.seen[touched_rows], 1)
        window.carries = window.filled = True
        if filled:
            window.rows[ids] = merge_rows(window.rows[ids], rows.matrix[touched_rows])
            window.seen[ids] += seen
            window.histograms[ids] += rows.histograms[touched_rows]
        else:
            window.rows[ids] = rows.matrix[touched_rows]
            window.seen[ids] = seen
            window.histograms[ids] = rows.histograms[touched_rows]
        for row, slot in rows.slots.items():
            if slot.bits is not None and touched[row]:
                into = window.bits_of(self.catalogue.ids[row])
                common = min(len(into), len(slot.bits))
                into[:common] |= slot.bits[:common]
                if not keep:
                    slot.bits[...] = 0
        waiting = np.flatnonzero(rows.histograms[:used].any(axis=1) & ~touched)
        series_ids = self.catalogue.ids[waiting]
        window.histograms[series_ids] += rows.histograms[waiting]  # of windows that carried none
        if not keep:
            rows.matrix[touched_rows] = _EMPTY
            rows.histograms[:used] = 0
            self.seen[:used] = 0
            self._before[:used] = 0
        return window

    def _move(self, window: Window, used: int, carries: bool) -> Window:
        """The same for a window that is empty, in one call of the native kernel."""
        rows, catalogue, words = self.rows, self.catalogue, self._words
        if len(rows.with_bits) != len(self._slots):
            self._slots = np.array([slot.address for slot in rows.with_bits], np.int64)
        words[5:8] = used, self._slots.ctypes.data, len(self._slots)
        for _ in range(2):
            layout = window.layout
            to_rows, to_histograms, to_seen, to_bits = window.addresses
            words[8:] = (
                to_rows, to_histograms, to_seen, to_bits, layout.offset_table.ctypes.data, carries,
                len(layout),
            )  # fmt: skip
            window.filled = True  # an interrupt may come before it is counted as such
            if binding.functions.move_rows(self._words_address):
                break
            catalogue.identify(self._touched(used), rows.slots)
            window = catalogue.writer.widen(window)
        window.carries = carries
        return window

    def _touched(self, used: int) -> npt.NDArray[np.int64]:
        """The rows in which something was measured."""
        matrix = self.rows.matrix
        return np.flatnonzero(matrix[:used, _TENSORS] + matrix[:used, _SKIPPED] > 0)

    def clear(self) -> None:
        """Forgets everything."""
        self.rows.collect()
        self.rows.clear()
        clear_rows(self.rows.matrix)
        self.seen[...] = 0
        self._before[...] = 0


_EMPTY: Final = empty_rows(1)[0]
