"""The rows of a window as packed records, one for each block of series, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from nethook.errors import NotARunError
from nethook.runs.format.packing import compressed, pack, unpack_many
from nethook.runs.format.schema import BLOCK
from nethook.stats.fields import FIELDS, INDEX, WIDTH, Matrix, empty_rows, finite_counts
from nethook.stats.native import kernel

COLUMNS: Final = (*FIELDS, "seen")
"""The numbers of one series in one window: its summary, and the steps in which it was measured."""

_TENSORS, _COUNT, _BINNED = INDEX["tensors"], INDEX["count"], INDEX["binned"]
_UNITS, _SKIPPED, _LOW = INDEX["units"], INDEX["skipped"], INDEX["mean_low"]
_MEAN, _M2 = INDEX["mean"], INDEX["m2"]

# Moments are kept to 13 digits: m2 relative to itself, the mean relative to the deviation. That
# changes no merged moment by 1e-12, and the digits after them, which are noise, would be a quarter
# of the file.
_DIGITS: Final = 42  # bits


class Basis:
    """What a series usually counts in one tensor: records keep the differences from it.

    Elements of a tensor hardly ever change from window to window, so nearly all of the differences
    are zero and take no room.
    """

    def __init__(self) -> None:
        self.units: list[int] = []
        self.elements: list[int] = []
        self.binned: list[int] = []
        self._table: Matrix | None = None  # (series, 3), made when it is needed

    def __len__(self) -> int:
        return len(self.units)

    def add(self, units: int, elements: int = 0, binned: int = 0) -> None:
        """One more series."""
        self.units.append(units)
        self.elements.append(elements)
        self.binned.append(binned)
        self._table = None

    def learn(self, rows: Matrix) -> list[int]:
        """Take the basis of series that have none from their first rows; returns which."""
        learned: list[int] = []
        new = self.table()[: len(rows), 0] == 0
        if not new.any():
            return learned
        for series in np.flatnonzero(
            new & (rows[:, _TENSORS] > 0) & (rows[:, _COUNT] > 0)
        ).tolist():
            tensors = rows[series, _TENSORS]
            self.elements[series] = max(1, int(rows[series, _COUNT] // tensors))
            self.binned[series] = int(rows[series, _BINNED] // tensors)
            learned.append(series)
            self._table = None
        return learned

    def table(self) -> Matrix:
        """Elements, binned and units of each series: (series, 3)."""
        if self._table is None:
            columns = (self.elements, self.binned, self.units)
            self._table = np.ascontiguousarray(np.array(columns, dtype=np.float64).reshape(3, -1).T)
        return self._table

    def expected(self, series: npt.NDArray[np.int64], tensors: Matrix) -> Matrix:
        """Count, binned and units as the basis has them: (n, series) tensors -> (n, series, 3)."""
        usual: Matrix = np.repeat(self.table()[series][None], len(tensors), axis=0)
        usual[..., :2] *= tensors[..., None]
        return usual


_BASED = [_COUNT, _BINNED, _UNITS]


def pack_rows(
    rows: Matrix, seen: npt.NDArray[np.int64], basis: Basis
) -> Iterator[tuple[int, bytes]]:
    """Number and packed record of each block that has anything to say."""
    functions = kernel.functions
    if functions is not None and rows.flags.c_contiguous and seen.flags.c_contiguous:
        table = basis.table()
        usual = table.ctypes.data
        for block, head, body in functions.pack_rows(
            rows.ctypes.data, seen.ctypes.data, len(rows), usual
        ):
            yield block, compressed(head, body)
        return
    there = (seen > 0) | (rows[:, _TENSORS] > 0) | (rows[:, _SKIPPED] > 0)
    for first in range(0, len(rows), BLOCK):
        last = min(first + BLOCK, len(rows))
        places = np.flatnonzero(there[first:last])
        if not len(places):
            continue
        table = np.empty((len(places), 1 + len(COLUMNS)))
        table[:, 0] = places
        block_rows = rows[first:last][places]
        block_rows[:, _BASED] -= basis.expected(first + places, block_rows[None, :, _TENSORS])[0]
        _shorten(block_rows, finite_counts(rows[first:last][places]))
        table[:, 1 : 1 + WIDTH] = block_rows
        table[:, -1] = seen[first:last][places]
        yield first // BLOCK, pack(table)


def unpack_rows(
    records: Sequence[object], block: int, basis: Basis, columns: Sequence[str] = COLUMNS
) -> Iterator[tuple[list[int], npt.NDArray[np.int64], Matrix]]:
    """Which of the records, which series they have, and their numbers (n, series, COLUMNS).

    `columns` is the order in which the file has them; one that it lacks is as in an empty row.
    """
    last = min((block + 1) * BLOCK, len(basis))
    for which, tables in unpack_many(records, columns=1 + len(columns), max_rows=BLOCK):
        if tuple(columns) == COLUMNS:
            numbers = tables[:, :, 1:]
        else:
            shape = tables.shape[:2]
            numbers = np.concatenate((empty_rows(*shape), np.zeros((*shape, 1))), axis=-1)
            for column, name in enumerate(columns):
                if name in COLUMNS:
                    numbers[:, :, COLUMNS.index(name)] = tables[:, :, 1 + column]
        for chosen, series in same_series(tables[:, :, 0], block, last):
            members = numbers[chosen]
            members[..., _BASED] += basis.expected(series, members[..., _TENSORS])
            yield [which[index] for index in chosen], series, members


def same_series(
    places: Matrix, block: int, end: int
) -> Iterator[tuple[list[int], npt.NDArray[np.int64]]]:
    """Records that have the same series, which are checked: (records, rows) -> which, series."""
    first = block * BLOCK
    if len(places) and not (places == places[0]).all():
        groups: dict[bytes, list[int]] = {}
        for index, row in enumerate(places):
            groups.setdefault(row.tobytes(), []).append(index)
        chosen = list(groups.values())
    else:
        chosen = [list(range(len(places)))]
    for indices in chosen:
        row = places[indices[0]]
        if not ((row >= 0) & (row < end - first)).all() or not (np.diff(row) > 0).all():
            raise NotARunError("a packed record names series that the file does not have")
        yield indices, row.astype(np.int64) + first


def _shorten(rows: Matrix, finite: Matrix) -> None:
    """Round the moments of rows to the digits that mean something, in place."""
    m2 = rows[:, _M2]
    usual = (m2 > 1e-290) & (m2 < 1e290) & (finite > 0)  # else the steps below leave float64
    m2 = np.where(usual, m2, 1.0)
    quantum = np.exp2(np.frexp(m2)[1] - _DIGITS - 1)
    rows[usual, _M2] = (np.rint(m2 / quantum) * quantum)[usual]
    quantum = np.exp2(np.frexp(np.sqrt(m2 / np.maximum(finite, 1.0)))[1] - _DIGITS - 1)
    # Where the mean has no digits to spare its low part matters, and nothing is rounded.
    roomy = usual & (np.abs(rows[:, _MEAN]) < 2.0**51 * quantum)
    rows[roomy, _MEAN] = (np.rint(np.where(roomy, rows[:, _MEAN], 0.0) / quantum) * quantum)[roomy]
    rows[roomy, _LOW] = 0.0
