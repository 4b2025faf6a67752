"""What a summary must say, by brute force: plain loops and exact sums in Python."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import torch

from nethook.stats.fields import BINS, INDEX, WIDTH, ZERO_BIN, magnitude_edges

EDGES = magnitude_edges()

EXACT_FIELDS = (
    "tensors",
    "skipped",
    "count",
    "nan",
    "posinf",
    "neginf",
    "zeros",
    "min",
    "max",
    "near_low",
    "near_high",
    "bounded",
    "binned",
    "units",
    "active",
)


def values(tensor: torch.Tensor) -> list[float]:
    """The elements in order, as Python floats; complex numbers by magnitude."""
    dense = tensor.detach().resolve_conj().resolve_neg()
    if not dense.is_complex():
        return [float(x) for x in dense.to(torch.float64).reshape(-1).tolist()]
    parts = torch.view_as_real(dense).to(torch.float64).reshape(-1, 2).tolist()
    if dense.dtype == torch.complex128:
        return [_scaled(re, im) for re, im in parts]
    return [_root(re * re + im * im) for re, im in parts]


def _root(x: float) -> float:
    return math.sqrt(x) if x == x else math.nan


def _scaled(re: float, im: float) -> float:
    if math.isnan(re) or math.isnan(im):
        return math.nan
    large, small = max(abs(re), abs(im)), min(abs(re), abs(im))
    if large in (0.0, math.inf):
        return large
    ratio = small / large
    return large * math.sqrt(1.0 + ratio * ratio)


def bin_of(x: float) -> int:
    """The bin of a number, from the edges alone."""
    if x == 0:
        return ZERO_BIN
    place = int(np.searchsorted(EDGES, abs(x), side="right"))
    return ZERO_BIN + place if x > 0 else ZERO_BIN - place


def reference_row(
    tensor: torch.Tensor,
    *,
    unit_dim: int | None = None,
    near: tuple[float, float] | None = None,
    sampled: list[float] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Row, histogram and unit bits of one tensor."""
    elements = values(tensor)
    finite = [x for x in elements if math.isfinite(x)]
    row = np.zeros(WIDTH)
    row[INDEX["tensors"]] = 1
    row[INDEX["count"]] = len(elements)
    row[INDEX["nan"]] = sum(math.isnan(x) for x in elements)
    row[INDEX["posinf"]] = sum(x == math.inf for x in elements)
    row[INDEX["neginf"]] = sum(x == -math.inf for x in elements)
    row[INDEX["zeros"]] = sum(x == 0 for x in elements)
    row[INDEX["min"]] = min(finite, default=math.inf)
    row[INDEX["max"]] = max(finite, default=-math.inf)
    if finite:
        mean, m2 = exact_moments(finite)
        row[INDEX["mean"]] = float(mean)
        row[INDEX["m2"]] = float(m2) if m2 < 2**1023 else math.inf
    if near is not None:
        row[INDEX["near_low"]] = sum(x <= near[0] for x in finite)
        row[INDEX["near_high"]] = sum(x >= near[1] for x in finite)
        row[INDEX["bounded"]] = len(finite)
    histogram = np.zeros(BINS, np.int64)
    for x in elements if sampled is None else sampled:
        if not math.isnan(x):
            histogram[bin_of(x)] += 1
    row[INDEX["binned"]] = histogram.sum()
    bits = None
    if unit_dim is not None:
        shaped = np.array(elements).reshape(tensor.shape)
        others = tuple(dim for dim in range(tensor.dim()) if dim != unit_dim)
        bits = (shaped != 0).any(axis=others).astype(np.uint8)
        row[INDEX["units"]] = len(bits)
        row[INDEX["active"]] = bits.sum()
    return row, histogram, bits


def exact_moments(finite: list[float]) -> tuple[Fraction, Fraction]:
    """Mean and sum of squared distances, without any rounding."""
    # Over a common power of two they are whole numbers, which is faster than fractions.
    scale = max(Fraction(x).denominator for x in finite)
    whole = [int(Fraction(x) * scale) for x in finite]
    n, total, squares = len(whole), sum(whole), sum(x * x for x in whole)
    return Fraction(total, n * scale), Fraction(n * squares - total * total, n * scale * scale)


def assert_close(row: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Counts and extrema equal; mean and deviation within a tolerance relative to the scale."""
    for name in EXACT_FIELDS:
        assert row[INDEX[name]] == expected[INDEX[name]], name
    n = expected[INDEX["count"]] - expected[INDEX["nan"] : INDEX["neginf"] + 1].sum()
    if not n:
        assert row[INDEX["mean"]] == 0
        assert row[INDEX["m2"]] == 0
        return
    std = math.sqrt(expected[INDEX["m2"]] / n)
    scale = math.hypot(std, expected[INDEX["mean"]])
    assert abs(row[INDEX["mean"]] - expected[INDEX["mean"]]) <= tolerance * scale
    # Relative to the deviation itself, however large the mean is.
    assert abs(math.sqrt(row[INDEX["m2"]] / n) - std) <= tolerance * std


def tolerance_of(dtype: torch.dtype) -> float:
    """What the issue of the kernel promises for an input type."""
    small = (torch.float16, torch.bfloat16, torch.float32, torch.complex64, torch.complex32)
    return 1e-6 if dtype in small else 1e-12
