"""Medians and other quantiles of what a run has measured, as numpy has them.

`np.median` and `np.quantile` import numpy's masked arrays when they are first called, which takes
longer than all the quantiles of a diagnosis together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def median(values: npt.ArrayLike) -> float:
    """The value in the middle, or the mean of the two; NaN where one is NaN, or there is none."""
    given = np.asarray(values, dtype=np.float64)
    if not given.size or np.isnan(given).any():
        return float("nan")
    return float(_of_rows(given[None])[0])


def quantile(values: npt.ArrayLike, share: float) -> float:
    """The value that a share of all is not above, between two of them by their distance from it.

    NaN where one is NaN, or there is none, or where one of the two is infinite.
    """
    given = np.asarray(values, dtype=np.float64)
    if not given.size or np.isnan(given).any():
        return float("nan")
    place = share * (given.size - 1)
    low = min(int(place), given.size - 1)
    high, part = min(low + 1, given.size - 1), place - low
    ordered = np.partition(given, (low, high))
    with np.errstate(invalid="ignore"):
        between = ordered[high] - ordered[low]
        if part < 0.5:  # from the nearer one, as numpy does
            return float(ordered[low] + between * part)
        return float(ordered[high] - between * (1 - part))


def running_medians(values: Floats, width: int) -> Floats:
    """The median of every `width` values that follow one another; none of them is NaN."""
    return _of_rows(np.lib.stride_tricks.sliding_window_view(values, width))


def _of_rows(rows: Floats) -> Floats:
    low, high = (rows.shape[1] - 1) // 2, rows.shape[1] // 2
    ordered = np.partition(rows, (low, high), axis=1)
    middle: Floats = ordered[:, low]
    if low < high:
        middle = (middle + ordered[:, high]) / 2
    return middle + 0.0  # of -0.0 it makes 0.0, which is nicer to read
