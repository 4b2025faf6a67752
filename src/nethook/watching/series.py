"""The series of a watch: which row each is folded into, and which series of the file it is.

Every series has one row, the same in the sheets of every phase. It becomes a series of the file
when it is first measured: only then is known how many units it has. So `Catalogue` is asked when a
sheet is closed, or shown: it adds the series that are new, and says which row of it is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nethook.runs.writing.writer import RunWriter
from nethook.stats.rows import Rows, Slot
from nethook.stats.sheet import Order, Sheet

HISTOGRAM_LIMIT: Final = 1024
"""Elements of one tensor that its histogram is read from; the next tensor gives others."""


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
        self._order = Order(self.ids[:0])

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
        self._order = Order(self.ids[:0])
        for row in rows[self.ids[rows] < 0].tolist():
            address, quantity, info = self.keys[row]
            slot = slots.get(row)
            units = 0 if slot is None or slot.bits is None else len(slot.bits)
            self.ids[row] = self.writer.add_series(address, quantity, units=units, info=info)

    # Sheets

    def new_rows(self) -> Rows:
        """What the tensors of a phase are folded into: a row for every series."""
        return Rows(self.capacity, limit=HISTOGRAM_LIMIT)

    def close(self, rows: Rows, phase: str, *, carries: bool = True) -> Sheet:
        """Closes the sheet that is open: it is the window of its steps.

        Arguments:
            rows: whose sheet.
            phase: what its steps were.
            carries: whether its histograms go with it; else they wait for one of the next.
        """
        empty = self.writer.window(phase, rows=self.capacity)
        self.describe(rows, clears=True)
        rows.sheet.phase = phase
        return rows.turn(empty, carries=carries)

    def describe(self, rows: Rows, *, clears: bool = False) -> Sheet:
        """Says in the open sheet which series its rows are, and which units were active.

        What was measured on devices is fetched. The sheet can be copied then; with `clears` it must
        be closed.
        """
        rows.collect()
        sheet = rows.sheet
        while True:
            sheet.fit(self.writer.layout)
            sheet.order = self._current()
            if rows.note_units(clears=clears):
                return sheet
            self.identify(np.flatnonzero(sheet.touched()), rows.slots)

    def _current(self) -> Order:
        if len(self._order) != len(self.keys):
            self._order = Order(self.ids[: len(self.keys)].copy())
        return self._order
