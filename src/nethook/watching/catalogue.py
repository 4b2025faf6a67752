"""The series of a watch, and the rows that they are folded into until a window ends.

Every series has one row, the same in the sheet of every phase. It becomes a series of the file when
it is first measured: only then is known how many units it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nethook.runs.window import Window
from nethook.runs.writer import RunWriter
from nethook.stats.fields import INDEX, clear_rows, empty_rows, merge_rows
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

    Cost: 5.5 KB a series, and a byte a unit.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.rows = Rows(catalogue.capacity, limit=HISTOGRAM_LIMIT)
        self.seen = np.zeros(catalogue.capacity, np.int64)
        self._before = np.zeros(catalogue.capacity)
        self._tensors = self.rows.matrix[:, _TENSORS]

    def slot(
        self,
        row: int,
        *,
        unit_dim: int | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> Slot:
        """The place that tensors of a series are folded into."""
        return self.rows.slot(row, unit_dim=unit_dim, bounds=bounds)

    def step_ended(self) -> None:
        """One more step: counts which series were measured in it."""
        used = len(self.catalogue.keys)
        tensors = self._tensors[:used] + self.rows.away[:used]
        self.seen[:used] += tensors > self._before[:used]
        self._before[:used] = tensors

    def fill(self, window: Window, *, keep: bool = False) -> Window:
        """Moves everything into a window, or copies it; the window may have grown.

        What the window has already is merged with it.
        """
        rows = self.rows
        rows.collect()
        used = len(self.catalogue.keys)
        touched = rows.matrix[:used, _TENSORS] + rows.matrix[:used, _SKIPPED] > 0
        places = np.flatnonzero(touched)
        self.catalogue.identify(places, rows.slots)
        window = self.catalogue.writer.widen(window)
        ids = self.catalogue.ids[places]
        seen = np.maximum(self.seen[places], 1)
        if window.steps:
            window.rows[ids] = merge_rows(window.rows[ids], rows.matrix[places])
            window.seen[ids] += seen
            window.histograms[ids] += rows.histograms[places]
        else:
            window.rows[ids] = rows.matrix[places]
            window.seen[ids] = seen
            window.histograms[ids] = rows.histograms[places]
        for row, slot in rows.slots.items():
            if slot.bits is not None and touched[row]:
                into = window.bits_of(self.catalogue.ids[row])
                common = min(len(into), len(slot.bits))
                into[:common] |= slot.bits[:common]
                if not keep:
                    slot.bits[...] = 0
        if not keep:
            rows.matrix[places] = _EMPTY
            rows.histograms[places] = 0
            self.seen[:used] = 0
            self._before[:used] = 0
        return window

    def clear(self) -> None:
        """Forgets everything."""
        self.rows.collect()
        self.rows.clear()
        clear_rows(self.rows.matrix)
        self.seen[...] = 0
        self._before[...] = 0


_EMPTY: Final = empty_rows(1)[0]
