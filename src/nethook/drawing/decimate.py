"""Fewer points, with the least and the greatest of what each stands for."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Final

import numpy as np

from nethook.drawing.data import Floats, Grid, Integers, Line

POINTS: Final = 1000
"""Points of a line: about one a pixel."""
COLUMNS: Final = 600
"""Columns of a heatmap."""


def thin_line(line: Line, points: int = POINTS) -> Line:
    """A line with at most `points` points: means, with the least and the greatest beside."""
    step = np.asarray(line.step, dtype=np.float64)
    value = np.asarray(line.value, dtype=np.float64)
    if len(step) <= points:
        return line
    groups = bins_of(step, step, points)
    least = value if line.least is None else line.least
    greatest = value if line.greatest is None else line.greatest
    starts = _starts(groups)
    ends = np.append(starts[1:], len(step)) - 1
    return replace(
        line,
        step=step[ends],
        value=_means(value, starts),
        least=_reduce(np.fmin, least, starts),
        greatest=_reduce(np.fmax, greatest, starts),
    )


def cut_line(line: Line, first: float, last: float) -> Line:
    """The part of a line between two steps, with one point beyond each end."""
    begin = max(0, int(np.searchsorted(line.step, first)) - 1)
    end = int(np.searchsorted(line.step, last, side="right")) + 1
    least, greatest = line.least, line.greatest
    return replace(
        line,
        step=line.step[begin:end],
        value=line.value[begin:end],
        least=None if least is None else least[begin:end],
        greatest=None if greatest is None else greatest[begin:end],
    )


def thin_grid(grid: Grid, columns: int = COLUMNS) -> Grid:
    """A grid with at most `columns` columns that are about equally many steps wide."""
    if grid.greatest.shape[1] <= columns:
        return grid
    groups = bins_of(grid.first_step, grid.last_step, columns)
    starts = _starts(groups)
    ends = np.append(starts[1:], len(groups)) - 1
    return Grid(
        grid.quantity,
        grid.rows,
        grid.first_step[starts],
        grid.last_step[ends],
        _reduce(np.fmin, grid.least, starts),
        _reduce(np.fmax, grid.greatest, starts),
        _last(grid.last, starts, ends),
        grid.note,
    )


def bins_of(first: Integers | Floats, last: Integers | Floats, bins: int) -> Integers:
    """Into which of `bins` equally wide parts of the axis each point falls, in rising order."""
    low, high = float(first[0]), float(last[-1])
    width = max(high - low, 1e-300) / bins
    middle = (np.asarray(first, dtype=np.float64) + np.asarray(last, dtype=np.float64)) / 2
    bin_of = np.clip(((middle - low) / width).astype(np.int64), 0, bins - 1)
    return np.maximum.accumulate(bin_of)


def _starts(groups: Integers) -> Integers:
    """Where each group of a rising sequence begins."""
    return np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))


def _reduce(function: np.ufunc, values: Floats, starts: Integers) -> Floats:
    """A function over the groups of the last axis; NaN only where all of a group is."""
    reduced: Floats = function.reduceat(np.asarray(values, dtype=np.float64), starts, axis=-1)
    return reduced


def _means(values: Floats, starts: Integers) -> Floats:
    there = np.isfinite(values)
    total = np.add.reduceat(np.where(there, values, 0.0), starts)
    count = np.add.reduceat(there.astype(np.float64), starts)
    with np.errstate(invalid="ignore"):
        means: Floats = total / count
    return means


def _last(values: Floats, starts: Integers, ends: Integers) -> Floats:
    """The last value of each group that is not NaN."""
    last: Floats = values[..., ends].astype(np.float64)
    for group in np.flatnonzero(np.isnan(last).any(axis=0)):  # few: most groups end with a number
        members = values[:, starts[group] : ends[group] + 1]
        there = ~np.isnan(members)
        position = members.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
        last[:, group] = np.where(
            there.any(axis=1), members[np.arange(len(members)), position], np.nan
        )
    return last


def robust_range(values: Floats, low: float = 0.02, high: float = 0.98) -> tuple[float, float]:
    """A range that a few wild values do not stretch; that of all where it would be nothing."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        ends = np.quantile(finite, (low, high))
    first, last = float(ends[0]), float(ends[1])
    if first == last:
        first, last = float(finite.min()), float(finite.max())
    return (first, last) if first < last else (first - 0.5, last + 0.5)
