"""Windows of several ranks on one axis of steps.

Ranks have the same windows nearly always: the clock is the same. Where one of them was behind, or
an event closed a window on one rank only, windows are merged until they have common ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nethook.stats.fields import Matrix, empty_rows, merge_rows

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Axis:
    """The common windows of some ranks, and in which of them each window of each rank is."""

    first_step: Integers
    last_step: Integers
    places: tuple[Integers, ...]

    def __len__(self) -> int:
        return len(self.last_step)


def common_axis(firsts: Sequence[Integers], lasts: Sequence[Integers]) -> Axis:
    """The finest windows that are made of whole windows of every rank.

    A rank that ended early (it died, or is behind) does not bind the others after its end.
    """
    if len(lasts) == 1 and (np.diff(lasts[0]) > 0).all():  # one rank: its windows are the axis
        return Axis(firsts[0].copy(), lasts[0].copy(), (np.arange(len(lasts[0])),))
    ends = np.unique(np.concatenate(lasts)) if lasts else np.zeros(0, dtype=np.int64)
    common = np.ones(len(ends), dtype=bool)
    for last in lasts:
        if len(last):
            common &= np.isin(ends, last) | (ends > last.max())
    if len(ends):
        common[-1] = True
    last_step = ends[common]
    places = tuple(np.searchsorted(last_step, last) for last in lasts)
    first_step = np.full(len(last_step), np.iinfo(np.int64).max)
    for first, indices in zip(firsts, places, strict=True):
        np.minimum.at(first_step, indices, first)
    return Axis(first_step, last_step, places)


def merge_onto(length: int, indices: Integers, rows: Matrix) -> Matrix:
    """Rows (n, …, FIELDS) merged into `length` of them, each at its index."""
    if np.array_equal(indices, np.arange(length)):  # each is alone, as those of one rank are
        alone: Matrix = rows + 0.0  # merged with nothing, -0.0 is 0.0
        return alone
    merged = empty_rows(length, *rows.shape[1:-1])
    for members in _turns(indices):
        merged[indices[members]] = merge_rows(merged[indices[members]], rows[members])
    return merged


def add_onto(
    length: int, indices: Integers, numbers: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Whole numbers (n, …) added up into `length` of them, each at its index."""
    added = np.zeros((length, *numbers.shape[1:]), dtype=np.int64)
    np.add.at(added, indices, numbers)
    return added


def course_onto(
    length: int, indices: Integers, course: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Courses (n, series, 3, SHOWN) merged: the least, the greatest, the last."""
    merged = np.full((length, *course.shape[1:]), np.nan)
    for members in _turns(indices):
        _merge_course(merged, indices[members], course[members])
    return merged


def merge_courses(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> None:
    """Merge the courses of another rank into `a`; the last value is that of the lowest rank."""
    a[:, :, 0] = np.fmin(a[:, :, 0], b[:, :, 0])
    a[:, :, 1] = np.fmax(a[:, :, 1], b[:, :, 1])
    a[:, :, 2] = np.where(np.isnan(a[:, :, 2]), b[:, :, 2], a[:, :, 2])


def _merge_course(
    merged: npt.NDArray[np.float64], indices: Integers, course: npt.NDArray[np.float64]
) -> None:
    old = merged[indices]
    old[:, :, 0] = np.fmin(old[:, :, 0], course[:, :, 0])
    old[:, :, 1] = np.fmax(old[:, :, 1], course[:, :, 1])
    old[:, :, 2] = np.where(np.isnan(course[:, :, 2]), old[:, :, 2], course[:, :, 2])
    merged[indices] = old


def _turns(indices: Integers) -> list[Integers]:
    """Which entries to merge first, second, …: no two of one turn have the same index.

    `indices` ascends, so an entry's turn is its distance from the first one with the same index.
    """
    turn = np.arange(len(indices)) - np.searchsorted(indices, indices)
    return [np.flatnonzero(turn == number) for number in range(int(turn.max(initial=-1)) + 1)]
