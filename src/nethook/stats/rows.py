"""Running summaries: the sheet that is open, and slots that tensors are folded into.

    rows = Rows(2)
    first = rows.slot(0, unit_dim=1)
    second = rows.slot(1, bounds=(0.0, 1.0))
    for x, y in data:
        first.fold(x)
        second.fold(y)
    rows.collect()
    rows.matrix, rows.histograms, first.bits

`Rows` has no numbers of its own: they are in its open `Sheet`, and `turn` takes that out for
whoever keeps it, with an empty one in its place. Slots, tables and the native kernel find the open
one through one struct (`RowsStruct`), so nobody else notices.

A slot takes the native kernel where it may and the torch kernel elsewhere. What is folded on
another device stays there, in slots of its own, until `collect` fetches it, one copy per device.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from nethook.errors import OptionError
from nethook.stats import shards, torch_kernel
from nethook.stats.fields import (
    INDEX,
    NEAR,
    Counts,
    Matrix,
    active_units,
    add_counts,
    merge_rows,
)
from nethook.stats.native import binding, readable
from nethook.stats.native.structs import NO_UNITS, ClosingStruct, RowsStruct, SlotStruct
from nethook.stats.sheet import Sheet
from nethook.stats.transfers import fetched

LIMIT = 4096
"""How many elements of one tensor are read for its histogram."""

EVERY = 2**62
"""As a limit: every element."""

_TENSORS = INDEX["tensors"]

MOST_UNITS = 1 << 24
"""A dimension with more units than that, which only an expanded one has, is not one of units."""


class Rows:
    """The rows, histograms and unit bits of a number of series, as far as they are folded.

    Arguments:
        series: how many rows.
        limit: how many elements of one tensor its histogram is read from (see `EVERY`).

    Cost: 5.4 KB per series, and a byte per unit.
    """

    def __init__(self, series: int, *, limit: int = LIMIT) -> None:
        if limit < 1:
            raise OptionError(f"`limit` must be at least 1; got {limit}.")
        self.limit = limit
        self.sheet = Sheet(rows=series)
        """The sheet that is open; only `turn` puts another in its place."""
        # Never cleared: the step through large tensors must not start anew with every window.
        self.turns: Counts = np.zeros(series, np.int64)
        self._before = np.zeros(series)  # the tensors of each row when the last step ended
        self._struct = RowsStruct(
            rows=self.sheet.rows_address,
            histograms=self.sheet.histograms_address,
            seen=self.sheet.seen_address,
            before=self._before.ctypes.data,
            turns=self.turns.ctypes.data,
            limit=limit,
        )
        self.address: int = ctypes.addressof(self._struct)
        """Where the native kernel reads which sheet is open."""
        self._closing = ClosingStruct(rows=self.address)
        self._closing_address = ctypes.addressof(self._closing)
        self.slots: dict[int, Slot] = {}
        # Tensors folded on other devices since `collect`: their rows tell only then.
        self.away: Counts = np.zeros(series, np.int64)
        self.with_bits: list[Slot] = []  # those that have units, once they have seen a tensor
        self._bit_slots: Counts = np.zeros(0, np.int64)  # their addresses
        self._elsewhere: dict[torch.device, _Elsewhere] = {}
        self.has_devices = False
        """Whether tensors of other devices are measured, too."""

    @property
    def matrix(self) -> Matrix:
        """The rows of the open sheet."""
        return self.sheet.rows

    @property
    def histograms(self) -> Counts:
        """Its histograms."""
        return self.sheet.histograms

    @property
    def seen(self) -> Counts:
        """The steps in which each of its rows was measured."""
        return self.sheet.seen

    def slot(
        self,
        row: int,
        *,
        unit_dim: int | None = None,
        bounds: tuple[float, float] | None = None,
        histogram: bool = True,
    ) -> Slot:
        """The slot that tensors of one series are folded into.

        Arguments:
            row: which row.
            unit_dim: the dimension that counts the units (from the end if negative); None: none.
            bounds: the two ends of a bounded activation.
            histogram: whether to count bins.
        """
        if not 0 <= row < len(self.turns):
            raise OptionError(f"`row` must be one of the {len(self.turns)} rows; got {row}.")
        slot = Slot(self, row, unit_dim=unit_dim, bounds=bounds, histogram=histogram)
        self.slots[row] = slot
        return slot

    def collect(self) -> None:
        """Fetch what was folded on other devices: one copy per device, which waits for it."""
        for elsewhere in self._elsewhere.values():
            elsewhere.collect(self)
        if self._elsewhere:
            self.away[...] = 0

    def clear(self) -> None:
        """Make every row of the open sheet empty; call `collect` first."""
        self.sheet.order = None  # of every row, and not only of those that had a series once
        self.sheet.clear()
        self._before[...] = 0
        for slot in self.slots.values():
            slot.skipped.clear()
            if slot.bits is not None:
                slot.bits[...] = 0

    def step_ended(self, _: int = 0) -> None:
        """One more step: counts which series were measured in it."""
        if binding.functions is not None and not self.has_devices:
            binding.functions.count_seen(self.address, len(self.turns))
            return
        tensors = self.matrix[:, _TENSORS] + self.away
        self.sheet.seen += tensors > self._before
        self._before[...] = tensors

    def note_units(self, *, clears: bool) -> bool:
        """Note in the open sheet which units were active, by its order and its layout.

        Arguments:
            clears: whether the slots begin anew.

        Returns:
            False, and nothing is done, where a row that was measured has no series in them.
        """
        sheet = self.sheet
        assert sheet.order is not None
        series, layout = sheet.order.series, sheet.layout
        if binding.functions is None:
            touched = sheet.touched()[: len(series)]
            if (touched & ((series < 0) | (series >= len(layout)))).any():
                return False
            for slot in self.with_bits:
                if slot.bits is not None and touched[slot.place]:
                    into = sheet.bits_of(int(series[slot.place]))
                    common = min(len(into), len(slot.bits))
                    into[:common] |= slot.bits[:common]
                    if clears:
                        slot.bits[...] = 0
            return True
        if len(self.with_bits) != len(self._bit_slots):
            self._bit_slots = np.array([slot.address for slot in self.with_bits], np.int64)
            self._closing.slots = self._bit_slots.ctypes.data
            self._closing.slot_count = len(self._bit_slots)
        closing = self._closing
        closing.used, closing.series = len(series), sheet.order.address
        closing.offsets, closing.room = layout.offset_address, len(layout)
        closing.bits, closing.clears = sheet.bits_address, clears
        return bool(binding.functions.note_units(self._closing_address))

    def turn(self, empty: Sheet, *, carries: bool = True) -> Sheet:
        """Close the sheet that is open, with an empty one in its place; the closed one.

        Arguments:
            empty: with as many rows.
            carries: whether the histograms go with it, and are not left to the next.
        """
        full, struct = self.sheet, self._struct
        if not carries:
            full.leave_histograms(empty)
        # No call from here on, so no interrupt: what is folded goes into the sheet that is ours.
        struct.rows, struct.seen = empty.rows_address, empty.seen_address
        struct.histograms = empty.histograms_address
        self._before[...] = 0
        self.sheet = empty
        full.closed = True
        return full

    def fold_numbers(self, places: Sequence[int], numbers: torch.Tensor) -> None:
        """Fold single numbers on a device, each into its own row; a NaN is one that is not there.

        Arguments:
            places: the rows, each once.
            numbers: as many, in one dimension.
        """
        self.elsewhere(numbers.device).fold_numbers(tuple(places), numbers)

    def non_finite(self) -> list[torch.Tensor]:
        """Of each device, how many elements of each row were not finite so far, still there."""
        return [
            device_slots.non_finite()
            for device_slots in self._elsewhere.values()
            if device_slots.touched
        ]

    def elsewhere(self, device: torch.device) -> _Elsewhere:
        """The slots on a device."""
        if device not in self._elsewhere:
            self.has_devices = True
            self._elsewhere[device] = _Elsewhere(device, self)
        return self._elsewhere[device]


class Slot:
    """Where the tensors of one series are folded into; made by `Rows.slot`.

    Attributes:
        bits: one byte per unit, 1 where the unit was ever active; None before the first tensor, and
            for series without units.
        skipped: tensors that could not be summarised, by kind.
    """

    __slots__ = (
        "_dim",
        "_struct",
        "address",
        "bits",
        "histogram",
        "near",
        "place",
        "rows",
        "skipped",
        "unit_dim",
    )

    def __init__(
        self,
        rows: Rows,
        row: int,
        *,
        unit_dim: int | None,
        bounds: tuple[float, float] | None,
        histogram: bool,
    ) -> None:
        self.rows = rows
        self.place = row
        self.unit_dim = unit_dim
        self.histogram = histogram
        self.near = None if bounds is None else near_ends(bounds)
        self.bits: npt.NDArray[np.uint8] | None = None
        self.skipped: Counter[str] = Counter()
        self._dim: int | None = None  # that of the units, in the last tensor
        low, high = self.near or (0.0, 0.0)
        self._struct = SlotStruct(
            rows=rows.address,
            row=row,
            binned=histogram,
            units=-1,
            unit_dim=NO_UNITS if unit_dim is None else unit_dim,
            low=low,
            high=high,
        )
        self.address: int = ctypes.addressof(self._struct)

    def fold(self, tensor: torch.Tensor, factor: float = 1.0) -> int:
        """Fold a tensor into the row. A kind that cannot be read is counted in `skipped`.

        Arguments:
            tensor: what to measure.
            factor: every element counts as its multiple.

        Returns:
            How many of its elements are not finite, where that is known without waiting; else 0.
        """
        if binding.fold is not None:
            odd = binding.fold_tensor(self.address, tensor, factor)
            if odd >= 0:
                return odd
            if odd == binding.OTHER_UNITS:
                self._fit_bits(tensor.shape)
                return binding.fold_tensor(self.address, tensor, factor)
        return self._fold_otherwise(tensor, factor)

    def _fold_otherwise(self, tensor: torch.Tensor, factor: float | torch.Tensor) -> int:
        held = shards.local_part(tensor)
        if held is not tensor:
            if held is not None:
                return self.fold(held, factor)  # type: ignore[arg-type]
            self.skip("partial")
            return 0
        kind = readable.kind(tensor)
        if kind is not None:
            self.skip(kind)
            return 0
        if tensor.device.type == "cpu":
            binding.missing_once()
        if self.unit_dim is not None:
            self._fit_bits(tensor.shape)
        units = self._dim is not None and self.bits is not None and len(self.bits) > 0
        self.rows.elsewhere(tensor.device).fold(self, tensor, self._dim if units else None, factor)
        return 0

    def skip(self, kind: str) -> None:
        """Count a tensor that is not summarised."""
        self.skipped[kind] += 1
        self.rows.matrix[self.place, INDEX["skipped"]] += 1

    def _fit_bits(self, shape: torch.Size) -> None:
        dim = self.unit_dim or 0
        dim = dim + len(shape) if dim < 0 else dim
        if not 0 <= dim < len(shape) or shape[dim] > MOST_UNITS:  # this tensor has no units
            self._dim = None
            return
        self._dim = dim
        if self.bits is None or shape[dim] != len(self.bits):
            # Another number of units than before: what was seen stays, for those that are in both.
            bits = np.zeros(shape[dim], np.uint8)
            if self.bits is None:
                self.rows.with_bits.append(self)
            else:
                common = min(len(bits), len(self.bits))
                bits[:common] = self.bits[:common]
            self.bits = bits
            self._struct.bits, self._struct.units = bits.ctypes.data, len(bits)


class _Elsewhere:
    """The slots of all series on one device, for the torch kernel."""

    def __init__(self, device: torch.device, rows: Rows) -> None:
        self.device = device
        self.rows, self.histograms, self.turns = torch_kernel.slots(device, len(rows.turns))
        self.turns.copy_(torch.from_numpy(rows.turns))
        self.bits: dict[int, torch.Tensor] = {}
        self.touched = False
        self._away = rows.away
        self._places: dict[tuple[int, ...], torch.Tensor] = {}

    def fold_numbers(self, places: tuple[int, ...], numbers: torch.Tensor) -> None:
        where = self._places.get(places)
        if where is None:
            where = torch.tensor(places).to(self.device, non_blocking=True)
            self._places[places] = where
        rows = self.rows.index_select(0, where)
        torch_kernel.merge_(rows, torch_kernel.number_rows(numbers.detach().to(rows.dtype)))
        self.rows.index_copy_(0, where, rows)
        self._away[list(places)] += 1
        self.touched = True

    def non_finite(self) -> torch.Tensor:
        return torch_kernel.non_finite(self.rows)

    def fold(
        self, slot: Slot, tensor: torch.Tensor, dim: int | None, factor: float | torch.Tensor
    ) -> None:
        place = slot.place
        bits = None
        if dim is not None:
            bits = self.bits.get(place)
            if bits is None or len(bits) != tensor.shape[dim]:
                known = bits
                bits = torch.zeros(tensor.shape[dim], dtype=torch.uint8, device=self.device)
                if known is not None:
                    common = min(len(bits), len(known))
                    bits[:common] = known[:common]
                self.bits[place] = bits
        torch_kernel.fold_(
            self.rows[place],
            tensor,
            histogram=self.histograms[place] if slot.histogram else None,
            turn=self.turns[place],
            limit=slot.rows.limit,
            bits=bits,
            unit=dim or 0,
            near=slot.near,
            factor=factor,
        )
        self._away[place] += 1
        self.touched = True

    def collect(self, into: Rows) -> None:
        if not self.touched:
            return
        self.touched = False
        tensors = [self.rows, self.histograms, self.turns, *self.bits.values()]
        on_host = iter([numbers.to(torch.float64) for numbers in fetched(tensors)])
        matrix = next(on_host).reshape(self.rows.shape).numpy()
        rows = into.matrix
        merge_rows(rows, matrix, out=rows)
        bins = next(on_host).reshape(self.histograms.shape).numpy()
        # The greatest float64 below 2^63, which would be a negative count.
        add_counts(into.histograms, np.minimum(bins, 2.0**63 - 1024).astype(np.int64))
        np.maximum(into.turns, next(on_host).numpy().astype(np.int64), out=into.turns)
        for place, bits in zip(self.bits, on_host, strict=True):
            known = into.slots[place].bits
            if known is not None:
                common = min(len(known), len(bits))
                known[:common] |= bits.numpy().astype(np.uint8)[:common]
                rows[place, INDEX["active"]] = active_units(known)
        torch_kernel.clear_(self.rows)
        self.histograms.zero_()
        for each in self.bits.values():
            each.zero_()


def near_ends(bounds: tuple[float, float]) -> tuple[float, float]:
    """Below the first and above the second, an element is near an end of its bounds."""
    low, high = bounds
    if not low < high:
        raise OptionError(f"`bounds` must be (low, high) with low < high; got {bounds}.")
    margin = NEAR * (high - low)
    return low + margin, high - margin
