"""Overview levels: the course of a run in few records, written as it goes.

For each series and each number of `SHOWN` a record of level 1 keeps the least, the greatest and the
last over 8 windows, level 2 over 64 and level 3 over 512. They have 12 bits of mantissa, which is
finer than any screen; least and greatest are rounded outwards.

A window adds its numbers to the open `Group` of level 1. The eighth makes the group a record, whose
course is then one member of the group of level 2, and so on. A group keeps one merged course and
not its members, so a phase has three courses in memory however long it runs. When a run is
continued, the open groups are made again from the records of the finer levels (`tail` says which):
its overviews are those of a run that never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nethook.runs.format.packing import compressed, pack, unpack_many
from nethook.runs.format.records import same_series
from nethook.runs.format.schema import BLOCK, LEVELS
from nethook.stats.fields import INDEX, Matrix, finite_counts
from nethook.stats.native import kernel

SHOWN: Final = ("mean", "std", "rms", "min", "max", "zeros", "nonfinite", "near")
"""What an overview shows: the last three are shares of the elements."""

GROUP: Final = LEVELS[0]
"""Records of one level that make one of the next."""

Course = npt.NDArray[Any]  # of floats, (series, 3, SHOWN): least, greatest, last


def shown_numbers(rows: Matrix) -> Matrix:
    """The numbers of SHOWN of each row (…, WIDTH); NaN where there is nothing to show."""
    count = rows[..., INDEX["count"]]
    finite = finite_counts(rows)
    mean = rows[..., INDEX["mean"]]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        variance = rows[..., INDEX["m2"]] / finite
        near = rows[..., INDEX["near_low"]] + rows[..., INDEX["near_high"]]
        shown = np.stack(
            (
                mean,
                np.sqrt(variance),
                np.sqrt(variance + mean * mean),
                rows[..., INDEX["min"]],
                rows[..., INDEX["max"]],
                rows[..., INDEX["zeros"]] / count,
                (count - finite) / count,
                near / rows[..., INDEX["bounded"]],
            ),
            axis=-1,
        )
    shown[..., :5][finite == 0] = np.nan
    return shown


class Group:
    """The records of one level that are on their way to be one of the next."""

    def __init__(self) -> None:
        self.members = 0
        self.course: Course = np.empty((0, 3, len(SHOWN)))

    def add(self, course: Course) -> None:
        """One more member; it may have more series than those before it."""
        if self.members == 0:
            self.course = course.copy()
        else:
            series = len(self.course)
            mine, new = self.course, course[:series]
            np.fmin(mine[:, 0], new[:, 0], out=mine[:, 0])
            np.fmax(mine[:, 1], new[:, 1], out=mine[:, 1])
            np.copyto(mine[:, 2], new[:, 2], where=~np.isnan(new[:, 2]))
            if len(course) > series:
                self.course = np.concatenate((mine, course[series:]))
        self.members += 1

    def add_rows(self, rows: Matrix) -> None:
        """One more member: a window with these rows."""
        series = len(self.course)
        if kernel.functions is None or not rows.flags.c_contiguous or len(rows) < series:
            self.add(single(rows))
            return
        if len(rows) > series:
            more = np.full((len(rows) - series, 3, len(SHOWN)), np.nan)
            self.course = np.concatenate((self.course, more))
        kernel.functions.add_course(
            rows.ctypes.data, len(rows), self.course.ctypes.data, self.members == 0
        )
        self.members += 1

    @property
    def full(self) -> bool:
        """Whether this group is a whole record."""
        return self.members == GROUP

    def pack(self) -> Iterator[tuple[int, bytes]]:
        """Number and packed record of each block."""
        if kernel.functions is not None and self.course.dtype == np.float64:
            course = np.ascontiguousarray(self.course)
            made = kernel.functions.pack_course(course.ctypes.data, len(course))
            for block, head, body in made:
                yield block, compressed(head, body, worth=0.5)
            return
        rounded = np.stack(
            (
                _rounded(self.course[:, 0], down=True),
                _rounded(self.course[:, 1], down=False),
                _rounded(self.course[:, 2], down=None),
            ),
            axis=1,
        )
        there = np.asarray((~np.isnan(rounded)).any(axis=(1, 2)))
        for first in range(0, len(rounded), BLOCK):
            places = np.flatnonzero(there[first : first + BLOCK])
            if len(places):
                # Number by number, not least by least: neighbours that are alike pack well.
                numbers = rounded[first + places].transpose(0, 2, 1).reshape(len(places), -1)
                yield first // BLOCK, pack(np.column_stack((places, numbers)), worth=0.5)


def single(rows: Matrix) -> Course:
    """The course of rows (…, WIDTH) of one window: least, greatest and last are the same."""
    return np.repeat(shown_numbers(rows)[..., None, :], 3, axis=-2)


def unpack_courses(
    records: Sequence[object], block: int, series: int
) -> Iterator[tuple[list[int], npt.NDArray[np.int64], Course]]:
    """Which of the records, which series they have, and their courses (n, series, 3, SHOWN)."""
    columns = 1 + 3 * len(SHOWN)
    for which, tables in unpack_many(records, columns=columns, max_rows=BLOCK):
        end = min((block + 1) * BLOCK, series)
        for chosen, there in same_series(tables[:, :, 0], block, end):
            shape = (len(chosen), len(there), len(SHOWN), 3)
            course = tables[chosen, :, 1:].reshape(shape).transpose(0, 1, 3, 2)
            yield [which[index] for index in chosen], there, course


def tail(windows: int, level: int) -> list[tuple[int, int, int]]:
    """What to read for all of `windows` at `level`: (level, first number, number after the last).

    Whole records of that level, then of the finer ones for what is not yet a whole record, and the
    windows themselves (level 0) at the end.
    """
    plan = []
    done = 0
    for finer in range(level, -1, -1):
        width = LEVELS[finer - 1] if finer else 1
        last = windows // width
        plan.append((finer, done // width, last))
        done = last * width
    return plan


def _rounded(values: Matrix, *, down: bool | None) -> Matrix:
    """Values with 12 bits of mantissa: towards −∞, towards +∞, or towards zero.

    A float32 stores 23 bits, of which the lowest 11 are cleared: its lowest byte is zero, and
    packing.py keeps the other three. Clearing bits of a float rounds towards zero; where that is
    inwards, one unit of the lowest bit that is left (0x800) is added again.
    """
    limit = np.finfo(np.float32).max
    inside = np.where(np.isfinite(values), np.clip(values, -limit, limit), values)
    near = inside.astype(np.float32)
    # float32 rounds to the nearest; one step back where that was away from zero.
    bits = near.view(np.uint32) - (np.abs(near.astype(np.float64)) > np.abs(inside))
    bits = bits.astype(np.uint32) & np.uint32(0xFFFFF800)
    kept: Matrix = bits.view(np.float32).astype(np.float64)
    if down is None:
        return kept
    wrong = kept > inside if down else kept < inside  # towards zero was the wrong way
    bits = np.where(wrong, bits + np.uint32(0x800), bits)
    return bits.view(np.float32).astype(np.float64)
