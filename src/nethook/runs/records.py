"""The rows of a window as packed records, one for each block of series, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from nethook.errors import NotARunError
from nethook.runs.packing import pack, unpack
from nethook.runs.schema import BLOCK
from nethook.stats.fields import FIELDS, INDEX, WIDTH, Matrix, empty_rows, finite_counts

COLUMNS: Final = (*FIELDS, "seen")
"""The numbers of one series in one window: its summary, and the steps in which it was measured."""

_TENSORS, _COUNT, _BINNED = INDEX["tensors"], INDEX["count"], INDEX["binned"]
_UNITS, _SKIPPED, _LOW = INDEX["units"], INDEX["skipped"], INDEX["mean_low"]
_M2 = INDEX["m2"]

# The low part of a mean is kept only where it is more than this share of the deviation: below, it
# changes no merged moment by 1e-12, and its digits, which are noise, would be a fifth of the file.
_LOW_MATTERS: Final = 2.0**-44


@dataclass
class Basis:
    """What a series usually counts in one tensor: records keep the differences from it.

    Elements of a tensor hardly ever change from window to window, so nearly all of the differences
    are zero and take no room.
    """

    units: list[int] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)
    binned: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.units)

    def add(self, units: int, elements: int = 0, binned: int = 0) -> None:
        """One more series."""
        self.units.append(units)
        self.elements.append(elements)
        self.binned.append(binned)

    def learn(self, rows: Matrix) -> list[int]:
        """Take the basis of series that have none from their first rows; returns which."""
        learned = []
        for at in np.flatnonzero((rows[:, _TENSORS] > 0) & (rows[:, _COUNT] > 0)):
            if self.elements[at] == 0:
                tensors = rows[at, _TENSORS]
                self.elements[at] = max(1, int(rows[at, _COUNT] // tensors))
                self.binned[at] = int(rows[at, _BINNED] // tensors)
                learned.append(int(at))
        return learned

    def expected(self, first: int, last: int, tensors: Matrix) -> Matrix:
        """Count, binned and units as the basis has them, for the series from first to last."""
        elements = np.array(self.elements[first:last], dtype=np.float64)
        binned = np.array(self.binned[first:last], dtype=np.float64)
        units = np.array(self.units[first:last], dtype=np.float64)
        return np.stack((tensors * elements, tensors * binned, units), axis=-1)


_BASED = [_COUNT, _BINNED, _UNITS]


def pack_rows(
    rows: Matrix, seen: npt.NDArray[np.int64], basis: Basis
) -> Iterator[tuple[int, bytes]]:
    """Number and packed record of each block that has anything to say."""
    there = (seen > 0) | (rows[:, _TENSORS] > 0) | (rows[:, _SKIPPED] > 0)
    for first in range(0, len(rows), BLOCK):
        last = min(first + BLOCK, len(rows))
        places = np.flatnonzero(there[first:last])
        if not len(places):
            continue
        table = np.empty((len(places), 1 + len(COLUMNS)))
        table[:, 0] = places
        part = rows[first:last][places]
        part[:, _BASED] -= basis.expected(first, last, rows[first:last, _TENSORS])[places]
        finite = np.maximum(finite_counts(rows[first:last][places]), 1.0)
        deviation = np.sqrt(part[:, _M2] / finite)
        part[np.abs(part[:, _LOW]) <= _LOW_MATTERS * deviation, _LOW] = 0.0
        table[:, 1 : 1 + WIDTH] = part
        table[:, -1] = seen[first:last][places]
        yield first // BLOCK, pack(table)


def unpack_rows(
    data: object, block: int, basis: Basis, columns: Sequence[str] = COLUMNS
) -> tuple[npt.NDArray[np.int64], Matrix]:
    """Which series a record has, and their numbers in the order of COLUMNS.

    `columns` is the order in which the file has them; one that it lacks is as in an empty row.
    """
    table = unpack(data, columns=1 + len(columns), max_rows=BLOCK)
    first, last = block * BLOCK, min((block + 1) * BLOCK, len(basis))
    places = table[:, 0].astype(np.int64)
    if len(places) and (places.min() < 0 or places.max() >= last - first or not _rising(places)):
        raise NotARunError("a packed record names series that the file does not have")
    if tuple(columns) == COLUMNS:
        numbers = table[:, 1:]
    else:
        numbers = np.concatenate((empty_rows(len(table)), np.zeros((len(table), 1))), axis=1)
        for at, name in enumerate(columns):
            if name in COLUMNS:
                numbers[:, COLUMNS.index(name)] = table[:, 1 + at]
    tensors = np.zeros(last - first)
    tensors[places] = numbers[:, _TENSORS]
    numbers[:, _BASED] += basis.expected(first, last, tensors)[places]
    return places + first, numbers


def _rising(places: npt.NDArray[np.int64]) -> bool:
    return bool((np.diff(places) > 0).all())
