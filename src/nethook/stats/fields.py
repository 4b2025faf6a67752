"""The numbers of one summary: names, order, meaning, and how two of them become one.

A summary is one row of float64, in the order of `FIELDS`; many are a matrix `(…, len(FIELDS))`.
Beside a row there may be

- a histogram: `BINS` counts (int64), see "Histogram" below;
- unit bits: one byte (0 or 1) per unit, 1 where the unit was ever active, that is, not zero.

`merge_rows` merges whole matrices at once. Each field has one rule (`RULES`):

    sum    the two are added
    min    the smaller of the two
    max    the larger of the two
    chan   mean, mean_low and m2 together, after Chan, Golub and LeVeque

An empty row (`empty_rows`) changes nothing when it is merged. Counts and extrema merge exactly and
in any order; moments add an error of at most 1e-12.

Counts are float64 as well, so that a row is one packed piece: they are exact up to 2^53, and the
nearest float64 above it (a tensor that is expanded may have 2^62 elements). Bins are exact up to
2^63 − 1, and stay there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

FIELDS: Final = (
    # What was folded in.
    "tensors",  # tensors that are in this row
    "skipped",  # tensors that could not be summarised, and are not in this row
    "count",  # elements, finite or not
    "nan",  # elements that are NaN
    "posinf",  # elements that are +Inf
    "neginf",  # elements that are −Inf
    "zeros",  # elements that are zero (either sign)
    # Moments and extrema of the finite elements: count − nan − posinf − neginf of them.
    "mean",
    "mean_low",  # what rounding took from the mean: the mean is mean + mean_low (see below)
    "m2",  # sum of squared distances from the mean
    "min",  # +Inf when there is no finite element
    "max",  # −Inf when there is no finite element
    # For bounded activations: finite elements within 3 % of the range from an end, or beyond it.
    "near_low",
    "near_high",
    "bounded",  # finite elements of tensors with bounds; 0 when there are no bounds
    # The histogram of a large tensor is read from a part of it, so it has a total of its own.
    "binned",  # elements in the histogram; NaN is in none
    # Unit bits, counted. Exact while the bits are merged too (then: active_units(bits)).
    "units",  # units of the site; 0 when it has none
    "active",  # units that were active at least once; merging rows alone gives a lower bound
)
"""Names of the fields of a row, in order."""

WIDTH: Final = len(FIELDS)
"""Fields in a row."""

INDEX: Final = {name: index for index, name in enumerate(FIELDS)}
"""Name of a field -> its place in the row."""

RULES: Final = {
    "tensors": "sum",
    "skipped": "sum",
    "count": "sum",
    "nan": "sum",
    "posinf": "sum",
    "neginf": "sum",
    "zeros": "sum",
    "mean": "chan",
    "mean_low": "chan",
    "m2": "chan",
    "min": "min",
    "max": "max",
    "near_low": "sum",
    "near_high": "sum",
    "bounded": "sum",
    "binned": "sum",
    "units": "max",
    "active": "max",
}
"""Name of a field -> its rule of merging."""

NEAR: Final = 0.03
"""An element is near an end of its bounds within this share of their distance."""

# Histogram
#
# Sign × magnitude, in ascending order of value, so that a running sum gives quantiles:
#
#     0                 x <= −2^40, −Inf too      (overflow)
#     1 … 320           −2^40 < x <= −2^−40       (4 bins per octave, from large to small magnitude)
#     321               −2^−40 < x < 0            (underflow)
#     322               x == 0
#     323               0 < x < 2^−40             (underflow)
#     324 … 643         2^−40 <= x < 2^40
#     644               2^40 <= x, +Inf too       (overflow)
#
# An octave is cut where the top 7 bits of the mantissa reach 24, 53 and 87: the multiples of 1/128
# next to 2^(1/4), 2^(1/2) and 2^(3/4). Every float type has these bits (bfloat16 has no more), so
# the same value is in the same bin in every type, and no bin is wider than a factor of 1.191:
# its middle is within 9 % of each of its elements.
OCTAVE: Final = 4
"""Bins per octave."""
LOWEST: Final = -40
"""Magnitudes below 2**LOWEST are in the underflow bins."""
HIGHEST: Final = 40
"""Magnitudes from 2**HIGHEST are in the overflow bins."""
CUTS: Final = (24, 53, 87)
"""Where an octave is cut: in 1/128 above the power of two."""
ZERO_BIN: Final = (HIGHEST - LOWEST) * OCTAVE + 2
"""The bin of zero: bin `ZERO_BIN + k` and bin `ZERO_BIN - k` hold x and −x."""
BINS: Final = 2 * ZERO_BIN + 1
"""Bins of a histogram."""
MOST_COUNTED: Final = (1 << 63) - 1
"""What a bin counts at most."""


def magnitude_edges() -> Matrix:
    """The lower edges of the bins above `ZERO_BIN`: 0, 2^−40, …, 2^40.

    Bin `ZERO_BIN + 1 + i` holds `edges[i] <= x < edges[i + 1]`, the last one everything above.
    """
    starts = np.exp2(np.arange(LOWEST, HIGHEST, dtype=np.float64))
    steps = 1.0 + np.array((0, *CUTS)) / 128.0
    return np.concatenate(([0.0], np.outer(starts, steps).ravel(), [2.0**HIGHEST]))


def bin_values() -> Matrix:
    """The value that stands for each bin: within 9 % of every element of a bin with two ends."""
    low = magnitude_edges()[1:-1]
    high = magnitude_edges()[2:]
    middle = 2.0 * low * high / (low + high)  # equally far from both ends, relative to each
    side = np.concatenate(([2.0 ** (LOWEST - 1)], middle, [2.0**HIGHEST]))
    return np.concatenate((-side[::-1], [0.0], side))


def empty_rows(*shape: int) -> Matrix:
    """Rows into which nothing has been folded: what `merge_rows` leaves unchanged."""
    rows = np.zeros((*shape, WIDTH))
    clear_rows(rows)
    return rows


def clear_rows(rows: Matrix) -> None:
    """Make rows empty, in place."""
    rows[...] = 0.0
    rows[..., INDEX["min"]] = np.inf
    rows[..., INDEX["max"]] = -np.inf


def finite_counts(rows: Matrix) -> Matrix:
    """The finite elements of each row."""
    counts: Matrix = rows[..., INDEX["count"]] - rows[..., _NON_FINITE].sum(axis=-1)
    return np.maximum(counts, 0.0)  # beyond 2^53 they are rounded, each by itself


def merge_rows(a: Matrix, b: Matrix, out: Matrix | None = None) -> Matrix:
    """Merge matrices of rows, each row of `a` with the row of `b` at the same place.

        window = merge_rows(window, step)
        merge_rows(window, step, out=window)

    Arguments:
        a, b: float64 of shape `(…, WIDTH)`; they may be broadcast.
        out: where the result goes; may be `a` or `b`.

    Returns:
        The merged rows.
    """
    # The mean is kept as a sum of two floats: with a mean of 1e6 and a deviation of 1e-3, rounding
    # the mean alone to one float would cost the deviation nine digits at every merge.
    count_a, count_b = finite_counts(a), finite_counts(b)
    count = count_a + count_b
    share = count_b / np.maximum(count, 1.0)
    mean_a, mean_b = a[..., _MEAN], b[..., _MEAN]
    with np.errstate(over="ignore", invalid="ignore"):  # float64 near its limit: m2 becomes Inf
        delta = (mean_b - mean_a) + (b[..., _MEAN_LOW] - a[..., _MEAN_LOW])
        m2 = a[..., _M2] + b[..., _M2] + delta * delta * (count_a * share)
        # From the larger side, so that merging an empty row changes no bit.
        from_b = count_b > count_a
        rest = count_a / np.maximum(count, 1.0)
        base = np.where(from_b, mean_b, mean_a)
        step = np.where(from_b, b[..., _MEAN_LOW] - rest * delta, a[..., _MEAN_LOW] + share * delta)
        usual = np.isfinite(delta)
        mean, mean_low = two_sum(
            np.where(usual, base, mean_a * rest), np.where(usual, step, mean_b * share)
        )

    merged: Matrix = np.empty(np.broadcast_shapes(a.shape, b.shape)) if out is None else out
    least, most = (
        np.minimum(a[..., _LEAST], b[..., _LEAST]),
        np.maximum(a[..., _MOST], b[..., _MOST]),
    )
    np.add(a, b, out=merged)
    merged[..., _LEAST] = least
    merged[..., _MOST] = most
    merged[..., _MEAN] = mean
    merged[..., _MEAN_LOW] = mean_low
    merged[..., _M2] = m2
    return merged


def reduce_rows(rows: Matrix) -> Matrix:
    """Merge the rows of a matrix along its first axis into one: `(n, …, WIDTH) -> (…, WIDTH)`."""
    if len(rows) == 0:
        return empty_rows(*rows.shape[1:-1])
    while len(rows) > 1:  # in pairs: fewer roundings than one after the other
        half = len(rows) // 2
        merged = merge_rows(rows[:half], rows[half : 2 * half])
        rows = np.concatenate((merged, rows[2 * half :])) if len(rows) % 2 else merged
    only: Matrix = rows[0].copy()
    return only


def add_counts(into: Counts, more: Counts) -> None:
    """Adds the bins of one histogram to those of another, in place; no bin counts past its end."""
    into += more
    into[into < 0] = MOST_COUNTED


def active_units(bits: npt.NDArray[np.uint8]) -> int:
    """The units that were ever active, from their bits."""
    return int(np.count_nonzero(bits))


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """`a + b`, and what rounding took from it (Knuth); of arrays, of tensors and of numbers."""
    total = a + b
    rounded_b = total - a
    return total, (a - (total - rounded_b)) + (b - rounded_b)


_NON_FINITE = [INDEX["nan"], INDEX["posinf"], INDEX["neginf"]]
_MEAN, _MEAN_LOW, _M2 = INDEX["mean"], INDEX["mean_low"], INDEX["m2"]
_LEAST = [INDEX[name] for name, rule in RULES.items() if rule == "min"]
_MOST = [INDEX[name] for name, rule in RULES.items() if rule == "max"]
