"""What one or many tensors look like, in a few numbers: the object that people read.

s = summarise(tensor)
s.mean, s.std, s.min, s.max, s.zero_share, s.quantile(0.99)
both = s + summarise(other)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nethook.errors import InputsError, OptionError
from nethook.stats.fields import (
    BINS,
    FIELDS,
    INDEX,
    WIDTH,
    Counts,
    Matrix,
    active_units,
    add_counts,
    bin_values,
    empty_rows,
    finite_counts,
    merge_rows,
)
from nethook.stats.native import readable
from nethook.stats.rows import EVERY, MOST_UNITS, Rows, Slot

Bits = npt.NDArray[np.uint8]

# What to type for a kind of tensor that is not summarised.
_INSTEAD = {
    "sparse": "Pass tensor.to_dense(), or tensor.values() for what is stored.",
    "nested": "Pass tensor.values(), or each of its tensors.",
    "quantized": "Pass tensor.dequantize().",
    "mkldnn": "Pass tensor.to_dense().",
    "subclass": "Pass the plain tensor that it stands for.",
    "freed": "Summarise it before its memory is given back (storage.resize_(0)).",
    "functorch": "Summarise outside the transform, or what it returns.",
}


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """A row of numbers with names; the fields are explained in `nethook.stats.fields`.

    Arguments:
        row: the numbers, in the order of `fields.FIELDS`.
        histogram: counts of the bins; None where none were taken.
        bits: one byte per unit, 1 where it was ever active; None where there are no units.
        skipped: tensors that could not be summarised, by kind.

    Moments and extrema are of the finite elements, and NaN where there are none.
    """

    row: Matrix = field(default_factory=empty_rows)
    histogram: Counts | None = None
    bits: Bits | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.row.shape != (WIDTH,):
            raise OptionError(f"`row` must have the shape ({WIDTH},); got {self.row.shape}.")
        if self.histogram is not None and self.histogram.shape != (BINS,):
            raise OptionError(
                f"`histogram` must have the shape ({BINS},); got {self.histogram.shape}."
            )
        for array in (self.row, self.histogram, self.bits):
            if array is not None:
                array.flags.writeable = False
        object.__setattr__(self, "skipped", MappingProxyType(dict(self.skipped)))

    def _count(self, name: str) -> int:
        return int(self.row[INDEX[name]])

    def _number(self, name: str) -> float:
        return float(self.row[INDEX[name]])

    @property
    def tensors(self) -> int:
        """How many tensors it is of."""
        return self._count("tensors")

    @property
    def count(self) -> int:
        """How many elements, finite or not."""
        return self._count("count")

    @property
    def nan(self) -> int:
        """How many elements are NaN."""
        return self._count("nan")

    @property
    def posinf(self) -> int:
        """How many elements are +Inf."""
        return self._count("posinf")

    @property
    def neginf(self) -> int:
        """How many elements are −Inf."""
        return self._count("neginf")

    @property
    def zeros(self) -> int:
        """How many elements are zero."""
        return self._count("zeros")

    @property
    def finite(self) -> int:
        """How many elements are finite."""
        return int(finite_counts(self.row))

    @property
    def mean(self) -> float:
        """The mean of the finite elements."""
        return self._number("mean") if self.finite else math.nan

    @property
    def var(self) -> float:
        """The mean squared distance from the mean (over n, not n − 1)."""
        return self._number("m2") / self.finite if self.finite else math.nan

    @property
    def std(self) -> float:
        """The root of `var`."""
        return math.sqrt(self.var)

    @property
    def rms(self) -> float:
        """The root of the mean square: the norm over the root of the count."""
        return math.hypot(self.mean, self.std)

    @property
    def norm(self) -> float:
        """The Euclidean norm of the finite elements."""
        return self.rms * math.sqrt(self.finite) if self.finite else 0.0

    @property
    def min(self) -> float:
        """The least finite element."""
        return self._number("min") if self.finite else math.nan

    @property
    def max(self) -> float:
        """The greatest finite element."""
        return self._number("max") if self.finite else math.nan

    @property
    def zero_share(self) -> float:
        """The share of the elements that are zero."""
        return self.zeros / self.count if self.count else math.nan

    @property
    def non_finite_share(self) -> float:
        """The share of the elements that are NaN or infinite."""
        return (self.count - self.finite) / self.count if self.count else math.nan

    @property
    def near_low_share(self) -> float:
        """The share of the finite elements near the lower end of the bounds; NaN without bounds."""
        bounded = self._number("bounded")
        return self._number("near_low") / bounded if bounded else math.nan

    @property
    def near_high_share(self) -> float:
        """The share of the finite elements near the upper end of the bounds; NaN without bounds."""
        bounded = self._number("bounded")
        return self._number("near_high") / bounded if bounded else math.nan

    @property
    def units(self) -> int:
        """How many units; 0 where none were asked for."""
        return self._count("units")

    @property
    def dead_share(self) -> float:
        """The share of the units that were zero in every element; NaN without units."""
        return 1.0 - self._count("active") / self.units if self.units else math.nan

    def quantile(self, q: float) -> float:
        """The value that a share `q` of the elements does not exceed, within 9 %.

        It is read from the histogram: that of a large tensor which was read in part is within 9 %
        of the quantile of that part. Magnitudes from 2^-40 to 2^40 only are told apart. The ends
        (0 and 1) are exact. NaN is left out; infinite elements count.

        Arguments:
            q: between 0 and 1.

        Returns:
            The quantile; NaN where there is no histogram, or nothing in it.
        """
        if not 0.0 <= q <= 1.0:
            raise OptionError(f"`q` must be between 0 and 1; got {q}.")
        numbers = self.count - self.nan
        if self.histogram is None or not numbers:
            return math.nan
        # The infinite elements are counted in full, and are the ends of the order.
        if q * numbers <= self.neginf and self.neginf:
            return -math.inf
        if q * numbers > numbers - self.posinf:
            return math.inf
        if q == 1.0 or q == 0.0:
            return self.max if q else self.min
        running = np.cumsum(self.histogram, dtype=np.float64)  # int64 might not hold the sum
        total = running[-1]
        if not total:
            return math.nan
        rank = min(max(math.ceil(q * total), 1), total)  # of the elements in order, from 1
        bin_index = int(np.searchsorted(running, rank))
        return float(np.clip(bin_values()[bin_index], self.min, self.max))

    def merge(self, other: Summary) -> Summary:
        """The summary of all that both are of; the order does not matter."""
        histograms = [
            histogram.copy()
            for histogram in (self.histogram, other.histogram)
            if histogram is not None
        ]
        if len(histograms) == 2:
            add_counts(*histograms)
        bits = [unit_bits for unit_bits in (self.bits, other.bits) if unit_bits is not None]
        if len({len(unit_bits) for unit_bits in bits}) > 1:
            raise OptionError(
                f"A summary of {len(bits[0])} units cannot be merged with one of {len(bits[1])}."
            )
        row = merge_rows(self.row, other.row)
        active = np.bitwise_or.reduce(bits) if bits else None
        if active is not None:
            row[INDEX["active"]] = active_units(active)
        skipped = {
            kind: self.skipped.get(kind, 0) + other.skipped.get(kind, 0)
            for kind in (*self.skipped, *other.skipped)
        }
        return Summary(row, histograms[0] if histograms else None, active, skipped)

    def __add__(self, other: object) -> Summary:
        return self.merge(other) if isinstance(other, Summary) else NotImplemented

    def __radd__(self, other: object) -> Summary:
        # sum() starts with 0.
        return self if other == 0 else NotImplemented

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the fields by name, the histogram as a list, the dead units (`silent`)."""
        fields: dict[str, Any] = {name: float(self.row[INDEX[name]]) for name in FIELDS}
        fields["histogram"] = None if self.histogram is None else self.histogram.tolist()
        fields["silent"] = None if self.bits is None else np.flatnonzero(self.bits == 0).tolist()
        fields["not_summarised"] = dict(self.skipped)
        return fields

    def __repr__(self) -> str:
        parts = [f"{self.count:,} elements"]
        if self.finite:
            parts.append(f"mean {self.mean:.4g}")
            parts.append(f"std {self.std:.4g}")
            parts.append(f"min {self.min:.4g}")
            parts.append(f"max {self.max:.4g}")
        if self.count and self.histogram is not None and self.finite:
            parts.append(f"median {self.quantile(0.5):.3g}")
        if self.zeros:
            parts.append(f"{self.zero_share:.1%} zero")
        for name, count in (("NaN", self.nan), ("+Inf", self.posinf), ("−Inf", self.neginf)):
            if count:
                parts.append(f"{count:,} {name}")
        if self._count("bounded"):
            parts.append(f"{self.near_low_share + self.near_high_share:.1%} near the ends")
        if self.units:
            parts.append(f"{self.units - self._count('active'):,} of {self.units:,} units dead")
        if self.skipped:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.skipped.items())
            parts.append(f"not summarised: {kinds}")
        return f"Summary({', '.join(parts)})"


def summarise(
    tensor: torch.Tensor,
    *,
    unit_dim: int | None = None,
    bounds: tuple[float, float] | None = None,
    histogram: bool = True,
    limit: int | None = None,
) -> Summary:
    """Summarise one tensor, reading it once.

        summarise(x).quantile(0.99)
        summarise(relu_output, unit_dim=1).dead_share

    Arguments:
        tensor: any dense tensor, on any device.
        unit_dim: the dimension that counts units (`kinds.unit_dim` knows it of a module).
        bounds: the ends of a bounded activation, such as (0.0, 1.0).
        histogram: whether to count bins, which `quantile` needs.
        limit: read at most so many elements for the histogram; None: all of them.

    Returns:
        The summary. On a device other than the CPU, this waits for the device.
    """
    if not isinstance(tensor, torch.Tensor):
        raise InputsError(f"`tensor` must be a torch.Tensor; got {type(tensor).__name__}.")
    if not readable.is_plain(tensor):
        kind = readable.kind(tensor)
        if kind is not None:
            raise InputsError(
                f"A tensor of this kind is not summarised: {kind} ({type(tensor).__name__} of "
                f"{tensor.dtype}). {_INSTEAD.get(kind, '')}".rstrip()
            )
    if unit_dim is not None and not -tensor.dim() <= unit_dim < tensor.dim():
        raise OptionError(
            f"`unit_dim` must be one of the tensor's {tensor.dim()} dimensions; got {unit_dim}."
        )
    if unit_dim is not None and tensor.shape[unit_dim] > MOST_UNITS:
        raise OptionError(
            f"`unit_dim` must be a dimension of at most {MOST_UNITS:,} units; got one of "
            f"{tensor.shape[unit_dim]:,}. Leave it out, or pass the tensor before it is expanded."
        )
    rows = Rows(1, limit=EVERY if limit is None else limit)
    slot = rows.slot(0, unit_dim=unit_dim, bounds=bounds, histogram=histogram)
    slot.fold(tensor)
    return summary_of(slot)


def summary_of(slot: Slot) -> Summary:
    """What a slot holds by now. What lies on another device is fetched, which waits for it."""
    slot.rows.collect()
    return Summary(
        slot.rows.matrix[slot.place].copy(),
        slot.rows.histograms[slot.place].copy() if slot.histogram else None,
        None if slot.bits is None else slot.bits.copy(),
        slot.skipped,
    )
