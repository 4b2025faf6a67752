"""The torch kernel: summaries in torch operations, for every device and inside compiled graphs.

    row, histogram, turn = slots(device)
    fold_(row, x, histogram=histogram, turn=turn)           # eagerly, or in a compiled function

Nothing here waits for the device: no `.item()`, no boolean indexing, no Python branch on a value.
Shapes are branched on, since they are known while a graph is traced. `torch.var_mean` is never used
(50 to 120 times slower than a sum on CPU).

Counts, extrema and bins are the same as the native kernel's, to the last one. Sums are taken in
float64 relative to a value amid the elements, or in float32 where the device has no float64.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from nethook.stats.fields import (
    BINS,
    CUTS,
    HIGHEST,
    INDEX,
    LOWEST,
    MOST_COUNTED,
    OCTAVE,
    RULES,
    WIDTH,
    ZERO_BIN,
    two_sum,
)
from nethook.stats.repeats import Once, histogram_step, once
from nethook.torch_private import set_grad

_REPEATED = [INDEX[name] for name in ("count", "nan", "posinf", "neginf", "zeros", "m2")]
_REPEATED += [INDEX[name] for name in ("near_low", "near_high", "bounded")]
_NON_FINITE = slice(INDEX["nan"], INDEX["neginf"] + 1)
_SHIFT_SAMPLE = 64  # elements from which the shift is taken


def number_type(device: torch.device) -> torch.dtype:
    """The type of rows on a device: float64 where it has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def slots(device: torch.device, *shape: int) -> tuple[Tensor, Tensor, Tensor]:
    """Preallocated rows, histograms and turns (tensors folded so far) on a device."""
    rows = torch.zeros((*shape, WIDTH), dtype=number_type(device), device=device)
    clear_(rows)
    histograms = torch.zeros((*shape, BINS), dtype=torch.int64, device=device)
    return rows, histograms, torch.zeros(shape, dtype=torch.int64, device=device)


def clear_(rows: Tensor) -> None:
    """Make rows empty, in place."""
    rows.zero_()
    rows[..., INDEX["min"]] = torch.inf
    rows[..., INDEX["max"]] = -torch.inf


def fold_(
    row: Tensor,
    x: Tensor,
    *,
    histogram: Tensor | None = None,
    turn: Tensor | None = None,
    limit: int = 4096,
    bits: Tensor | None = None,
    unit: int = 0,
    near: tuple[float, float] | None = None,
    factor: float | Tensor = 1.0,
) -> None:
    """Fold one tensor into preallocated slots, all on its device.

    Arguments:
        row: the row, changed in place.
        x: any dense tensor.
        histogram, turn: int64 counts of the bins, and how many tensors they were taken of; the
            histogram of a tensor of more than `limit` elements is read with a step, which starts
            one element further each turn.
        bits: uint8, one a unit; `unit` is their dimension in `x`.
        near: where an element is near the ends of its bounds: `x <= near[0]`, `x >= near[1]`.
        factor: every element counts as its multiple.
    """
    was_on = torch.is_grad_enabled()
    try:  # and no `with torch.no_grad()`, which a signal that raises may leave on
        set_grad(False)
        read = read_once(x)
        if isinstance(factor, Tensor) or factor != 1.0:
            read = replace(read, values=read.values * factor)
        fresh = measure(read, row.dtype, near)
        if histogram is not None and turn is not None:
            step = histogram_step(x, limit)
            places, weights = _all_bins(read) if step == 1 else bins(_sample(read, step, turn))
            histogram.scatter_add_(0, places, weights)
            if read.times > 1 or read.counts is not None:
                histogram.copy_(torch.where(histogram < 0, MOST_COUNTED, histogram))
            turn.add_(1)
            fresh[INDEX["binned"]] = weights.sum()
        merge_(row, fresh)
        if bits is not None:
            bits.bitwise_or_(read.active(unit).to(bits.dtype))
            row[INDEX["units"]] = x.shape[unit]
            row[INDEX["active"]] = bits.sum()
    finally:
        set_grad(was_on)


def read_once(x: Tensor) -> Once:
    """The elements that a tensor has stored, as what they are measured as."""
    read = once(x.detach())
    return replace(read, values=_values(read.values))


def measure(read: Once, real: torch.dtype, near: tuple[float, float] | None = None) -> Tensor:
    """The fresh row of one real tensor: everything but the histogram and the units."""
    x = read.values
    row = x.new_zeros(WIDTH, dtype=real)
    clear_(row)
    row[INDEX["tensors"]] = 1
    if x.numel() == 0:
        return row
    finite = torch.isfinite(x)
    wide = x.to(real)
    weights = None if read.counts is None else read.counts.to(real)
    if read.counts is not None:
        finite = finite & (read.counts > 0)

    def amount(which: Tensor) -> Tensor:
        return (which if read.counts is None else torch.where(which, read.counts, 0)).sum()

    def total_of(numbers: Tensor) -> Tensor:
        return (numbers if weights is None else numbers * weights).sum()

    count = amount(finite).to(real)
    shift = _shift(wide, finite)
    distance = torch.where(finite, wide - shift, 0)
    total = total_of(distance)
    step = total / count.clamp(min=1)
    mean, mean_low = two_sum(shift, step)
    row[INDEX["count"]] = math.prod(read.shape) // read.times
    row[INDEX["nan"]] = amount(torch.isnan(x))
    row[INDEX["posinf"]] = amount(x == torch.inf)
    row[INDEX["neginf"]] = amount(x == -torch.inf)
    row[INDEX["zeros"]] = amount(x == 0)
    row[INDEX["mean"]] = torch.where(count > 0, mean, 0)
    row[INDEX["mean_low"]] = torch.where(count > 0, mean_low, 0)
    row[INDEX["m2"]] = (total_of(distance * distance) - total * step).clamp(min=0)
    row[INDEX["min"]] = torch.where(finite, wide, torch.inf).amin()
    row[INDEX["max"]] = torch.where(finite, wide, -torch.inf).amax()
    if near is not None:
        row[INDEX["near_low"]] = amount(finite & (wide <= near[0]))
        row[INDEX["near_high"]] = amount(finite & (wide >= near[1]))
        row[INDEX["bounded"]] = count
    if read.times > 1:
        for column in _REPEATED:
            row[column] *= read.times
    return row


def merge_(rows: Tensor, others: Tensor) -> None:
    """Merge rows into rows, in place: `fields.merge_rows` on the device."""
    # Counts beyond 2^53 are rounded: what is left of them must not be below zero.
    count_a = (rows[..., INDEX["count"]] - rows[..., _NON_FINITE].sum(-1)).clamp(min=0)
    count_b = (others[..., INDEX["count"]] - others[..., _NON_FINITE].sum(-1)).clamp(min=0)
    count = (count_a + count_b).clamp(min=1)
    mean_a, low_a = rows[..., INDEX["mean"]], rows[..., INDEX["mean_low"]]
    mean_b, low_b = others[..., INDEX["mean"]], others[..., INDEX["mean_low"]]
    delta = (mean_b - mean_a) + (low_b - low_a)
    from_b = count_b > count_a
    rest, share = count_a / count, count_b / count
    base = torch.where(from_b, mean_b, mean_a)
    step = torch.where(from_b, low_b - rest * delta, low_a + share * delta)
    usual = torch.isfinite(delta)  # not so for float64 near its limit
    mean, mean_low = two_sum(
        torch.where(usual, base, mean_a * rest), torch.where(usual, step, mean_b * share)
    )
    between = delta * delta * (count_a * share)
    merged = rows + others
    merged[..., INDEX["mean"]] = mean
    merged[..., INDEX["mean_low"]] = mean_low
    merged[..., INDEX["m2"]] = rows[..., INDEX["m2"]] + others[..., INDEX["m2"]] + between
    for name, rule in RULES.items():
        column = INDEX[name]
        if rule == "min":
            merged[..., column] = torch.minimum(rows[..., column], others[..., column])
        elif rule == "max":
            merged[..., column] = torch.maximum(rows[..., column], others[..., column])
    rows.copy_(merged)


def number_rows(numbers: Tensor) -> Tensor:
    """The row of each number; an empty one where it is NaN: a number that is not there."""
    rows = numbers.new_zeros((len(numbers), WIDTH))
    clear_(rows)
    there = ~torch.isnan(numbers)
    ones = there.to(rows.dtype)
    rows[:, INDEX["tensors"]] = ones
    rows[:, INDEX["count"]] = ones
    rows[:, INDEX["zeros"]] = (numbers == 0).to(rows.dtype)
    rows[:, INDEX["posinf"]] = (numbers == torch.inf).to(rows.dtype)
    rows[:, INDEX["neginf"]] = (numbers == -torch.inf).to(rows.dtype)
    finite = torch.isfinite(numbers)
    rows[:, INDEX["mean"]] = torch.where(finite, numbers, 0)
    rows[:, INDEX["min"]] = torch.where(finite, numbers, torch.inf)
    rows[:, INDEX["max"]] = torch.where(finite, numbers, -torch.inf)
    return rows


def non_finite(rows: Tensor) -> Tensor:
    """How many elements of each row are not finite."""
    return rows[..., _NON_FINITE].sum(-1)


def bins(x: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each element of a flat real tensor, and its weight: 0 for NaN, else 1."""
    if x.dtype == torch.float64:
        bits, top, one = x.view(torch.int64), 45, 1023
        size = bits & 0x7FFFFFFFFFFFFFFF
    else:
        bits, top, one = x.view(torch.int32), 16, 127
        size = bits & 0x7FFFFFFF
    mantissa = (size >> top) & 127
    octave = (size >> (top + 7)) - one - LOWEST
    index = 2 + OCTAVE * octave
    for cut in CUTS:
        index = index + (mantissa >= cut)
    index = torch.where(octave < 0, 1, index)
    index = torch.where(octave >= HIGHEST - LOWEST, ZERO_BIN, index)
    index = torch.where(size == 0, 0, index)
    index = torch.where(bits < 0, ZERO_BIN - index, ZERO_BIN + index).long()
    number = ~torch.isnan(x)
    return torch.where(number, index, ZERO_BIN), number.long()


def _values(x: Tensor) -> Tensor:
    """The tensor as what it is measured as: float32 or float64, complex numbers by magnitude."""
    if x.is_complex():
        return _magnitude(x)
    if x.dtype in (torch.float32, torch.float64):
        return x.resolve_neg()
    small = x.dtype.itemsize < 4 or x.device.type == "mps"
    return x.to(torch.float32 if small else torch.float64)


def _magnitude(x: Tensor) -> Tensor:
    # By the operations of the native kernel, which are exact or rounded once in every step, so
    # that both get the same bits; torch.abs is free to round otherwise.
    re, im = x.real, x.imag
    if x.dtype != torch.complex128:
        re, im = re.to(torch.float64), im.to(torch.float64)
        return _sqrt(re * re + im * im)
    re, im = re.abs(), im.abs()
    large, small = torch.maximum(re, im), torch.minimum(re, im)  # NaN if one of them is
    usual = (large > 0) & (large < torch.inf)
    ratio = small / torch.where(usual, large, 1)
    return torch.where(usual, large * _sqrt(1 + ratio * ratio), large)


def _sqrt(x: Tensor) -> Tensor:
    # torch.sqrt may be off by the last bit on CPU (it calls a vector library). One step of Newton
    # with the exact remainder x − root² (Dekker's product) rounds it as IEEE 754 demands.
    root = x.sqrt()
    high = root * 134217729.0  # 2^27 + 1: splits a float64 into two halves
    high = high - (high - root)
    low = root - high
    square = root * root
    error = low * low - ((square - high * high) - 2 * high * low)
    better = root + ((x - square) - error) / (2 * root)
    return torch.where((root > 0) & (root < torch.inf), better, root)


def _all_bins(read: Once) -> tuple[Tensor, Tensor]:
    """The bin of each stored element, and how often the tensor has it."""
    places, weights = bins(read.values.reshape(-1))
    if read.counts is not None:
        weights = weights * read.counts.expand(read.values.shape).reshape(-1)
    return places, weights * read.times


def _sample(read: Once, step: int, turn: Tensor) -> Tensor:
    """Every step-th element in order of the tensor, the first one further each turn."""
    x = read.values
    elements = math.prod(read.shape)
    places = turn % step + step * torch.arange(elements // step, device=x.device)
    if x.numel() == elements and x.is_contiguous():
        return x.view(-1)[places]
    return x[read.index(places)]


def _shift(wide: Tensor, finite: Tensor) -> Tensor:
    """A value amid the finite elements, so that sums lose no digits to a common offset."""
    # One index a dimension, in place of a flat view, which not every layout has without a copy.
    elements = wide.numel()
    places = torch.arange(
        0, elements, max(1, elements // _SHIFT_SAMPLE), device=wide.device, dtype=torch.int64
    )
    index = []
    for size in reversed(wide.shape):
        index.append(places % size)
        places = places // size
    some, usable = (
        (wide[tuple(reversed(index))], finite[tuple(reversed(index))])
        if index
        else (wide.reshape(1), finite.reshape(1))
    )
    seen = usable.sum()
    # Relative to the least of them: equal elements must give themselves, without rounding.
    base = torch.where(usable, some, torch.inf).amin()
    base = torch.where(seen > 0, base, 0)
    return base + torch.where(usable, some - base, 0).sum() / seen.clamp(min=1)
