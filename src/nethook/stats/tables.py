"""Many tensors, or many numbers, in one call.

A training step has hundreds of parameters, and a Python call for each would cost more than reading
them. Tensors that lie in one piece of CPU memory are lines of a table, which the native kernel goes
through at once:

    table = Table(rows, count)
    table.set(i, row, tensor, minus=before, factor=1.0)     # measures tensor * factor − before
    table.fold()

`Numbers` does the same for single numbers. Where there is no native kernel, numpy and torch do it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from nethook.stats.fields import WIDTH, empty_rows, merge_rows
from nethook.stats.native import binding, readable
from nethook.stats.native.structs import LineStruct
from nethook.stats.rows import EVERY, Rows
from nethook.torch_private import data_address

_LINE: Final = np.dtype(LineStruct)
SAMPLE: Final = 64
"""Coordinates of a tensor that `Follower` looks at."""
MARKED: Final = 4096
"""Words of 8 bytes that make the fingerprint of a tensor; one with fewer is read as a whole."""


def lies_flat(tensor: torch.Tensor) -> bool:
    """Whether the native kernel can read the tensor as one piece of memory, in whatever order."""
    return (
        binding.functions is not None
        and readable.is_plain(tensor)
        and tensor.dtype in binding.CODES
        and (
            tensor.is_contiguous()
            or (tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last))
            or (tensor.dim() == 5 and tensor.is_contiguous(memory_format=torch.channels_last_3d))
        )
    )


def start_of(tensor: torch.Tensor) -> int:
    """The address of the first element of a flat tensor, to be read only."""
    offset = int(tensor.storage_offset())
    address = data_address(tensor)
    return address + offset * tensor.element_size() if offset else address


class Table:
    """Lines of flat tensors; `fold` folds each line that is set into its row of `rows`."""

    __slots__ = (
        "_address", "_lines", "_others", "_others_address", "_rows", "address", "lines", "square",
        "squares", "zeros",
    )  # fmt: skip

    def __init__(self, rows: Rows, count: int) -> None:
        self.lines = np.zeros(count, _LINE)
        self.lines["factor"] = 1.0
        self.address = self.lines["address"]  # views: an address of 0 leaves a line out;
        self.squares = self.lines["square"]  # sums of squares of the finite elements, once folded
        self._rows = rows
        self._lines = count
        self._others = np.zeros(count, np.int64)
        self._others_address = self._others.ctypes.data
        self.square = 0.0
        self.zeros = 0
        self._address = self.lines.ctypes.data

    def set(self, line: int, row: int, tensor: torch.Tensor) -> None:
        """Says once what a line is: a flat tensor of this type and size, measured into this row."""
        self.lines[line] = (
            start_of(tensor),
            tensor.numel(),
            binding.CODES[tensor.dtype],
            row,
            0,
            0,
            1.0,
            0,
            0.0,
        )

    def fold(self, moved: int = 0) -> int:
        """Folds every line with an address; how many elements are not finite.

        `square` is then the sum of all squares, `zeros` how many lines are zero throughout.
        `moved` is the address of (2, lines) counters, of the times that a line was not zero and of
        all times; 0: none.
        """
        if binding.functions is None:  # then no tensor lies flat, and no line has an address
            self.square, self.zeros = 0.0, 0
            return 0
        odd: int
        odd, self.square, self.zeros = binding.functions.fold_flat(
            self._address, self._lines, self._rows.address, moved
        )
        return odd

    def count_odd(self, most: int = EVERY, turn: int = 0, lines: int | None = None) -> int:
        """How many lines, or of the first so many, have an element that is not finite.

        Of a tensor with more than `most` elements about so many are looked at, others each turn.
        """
        if binding.functions is None:
            return 0
        lines = self._lines if lines is None else lines
        count: int = binding.functions.count_odd(self._address, lines, most, turn)
        return count

    def find(self, tensors: list[torch.Tensor]) -> bool:
        """Asks the tensors, one a line, where they lie now; False where one is another by now."""
        if binding.functions is None:
            return not tensors
        changed: int = binding.functions.find(self._address, tensors)
        return changed == 0

    def find_grads(self, parameters: list[torch.Tensor], counts: int = 0) -> list[int]:
        """Asks the parameters, one a line, for their gradients.

        A line has no address where there is none, or one of another type or kind; the lines of the
        latter are returned. `counts` is the address of a counter a line, of those with an address.
        """
        if binding.functions is None:
            return []
        others = self._others
        count = binding.functions.find_grads(
            self._address, parameters, self._others_address, counts
        )
        return others[:count].tolist() if count else []

    def prober(
        self, parameters: list[torch.Tensor], lines: list[int], most: int
    ) -> Callable[[int], bool]:
        """What tells, given a turn, whether a gradient has an element that is not finite.

        It is that of the first of these parameters, each with its line, that has a flat one. See
        `count_odd` for `most` and turns. Nothing of Python's is called on the way.
        """
        if binding.functions is None:
            return lambda _: False
        return partial(binding.functions.probe, self._address, parameters, lines, most)

    @property
    def odd(self) -> npt.NDArray[np.int64]:
        """Elements of each line that were not finite in the last fold."""
        odd: npt.NDArray[np.int64] = self.lines["odd"]
        return odd


class Follower:
    """A fixed sample of coordinates of the tensors of a table: how they moved from look to look.

    Cost: 1 KB per tensor.
    """

    __slots__ = ("_addresses", "_seen", "cosines", "moves", "now")

    def __init__(self, table: Table) -> None:
        count = len(table.lines)
        self.now = np.zeros((count, SAMPLE))
        self.moves = np.zeros((count, SAMPLE))
        self.cosines = np.full(count, np.nan)
        self._seen = 0
        self._addresses = (
            table.lines.ctypes.data,
            count,
            SAMPLE,
            self.now.ctypes.data,
            self.moves.ctypes.data,
            self.cosines.ctypes.data,
        )

    def restart(self) -> None:
        """What comes next is not compared with what was before."""
        self._seen = 0
        self.moves[...] = 0.0

    def look(self) -> bool:
        """Takes the sample again; whether `cosines` has those of the last two moves."""
        if binding.functions is None:
            return False
        binding.functions.follow(*self._addresses)
        self._seen += 1
        if self._seen == 1:
            self.moves[...] = 0.0  # there was nothing to move from
        return self._seen > 2


class Numbers:
    """Single numbers, each folded into its own row: `values[i] = x`, then `fold()`.

    A NaN is a number that is not there. After a fold all are NaN again.
    """

    __slots__ = ("_addresses", "_folded", "_places", "_rows", "values")

    def __init__(self, rows: Rows, places: Sequence[int]) -> None:
        self._rows = rows
        self._places = np.array(places, np.int64)
        self._folded: list[float | None] | None = None
        self.values = np.full(len(places), np.nan)
        self._addresses = (
            self.values.ctypes.data,
            self._places.ctypes.data,
            len(places),
            rows.address,
        )

    def place(self, index: int, row: int) -> None:
        """Says which row a number is of."""
        self._places[index] = row

    def fold_list(self, numbers: list[float | None]) -> None:
        """Folds these, one for each row, where they are not None; the same list once alone.

        An interrupt that comes right after it is no reason to fold it again.
        """
        if numbers is self._folded:
            return
        self._folded = numbers
        if binding.functions is not None:
            binding.functions.fold_list(numbers, self._addresses[1], self._addresses[3])
            return
        self.values[:] = [np.nan if number is None else number for number in numbers]
        self.fold()

    def fold_lists(self, steps: list[list[float | None]]) -> None:
        """Folds the numbers of several steps, and counts for each row the steps that it was in.

        That is what `Rows.step_ended` would count after each of them. There is a kernel.
        """
        binding.functions.fold_lists(steps, self._addresses[1], self._addresses[3])

    def fold(self) -> None:
        """Folds the numbers that are there."""
        values, places = self.values, self._places
        if binding.functions is not None:
            binding.functions.fold_numbers(*self._addresses)
        else:
            there = places[~np.isnan(values)]
            matrix = self._rows.matrix
            matrix[there] = merge_rows(matrix[there], number_rows(values[~np.isnan(values)]))
        values.fill(np.nan)


def number_rows(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The row of each number."""
    from nethook.stats.fields import INDEX

    rows = empty_rows(len(values))
    finite = np.isfinite(values)
    rows[:, INDEX["tensors"]] = rows[:, INDEX["count"]] = 1
    rows[:, INDEX["nan"]] = np.isnan(values)
    rows[:, INDEX["posinf"]] = values == np.inf
    rows[:, INDEX["neginf"]] = values == -np.inf
    rows[:, INDEX["zeros"]] = values == 0
    rows[finite, INDEX["mean"]] = values[finite]
    rows[finite, INDEX["min"]] = values[finite]
    rows[finite, INDEX["max"]] = values[finite]
    assert rows.shape[1] == WIDTH
    return rows


def fingerprint(tensor: torch.Tensor) -> float | None:
    """A number that tensors with the same bytes share; None where the memory cannot be read."""
    if binding.functions is None:
        return _fingerprint_by_hash(tensor)
    if not lies_flat(tensor):
        return None
    number: float = binding.functions.fingerprint(
        start_of(tensor), tensor.numel() * tensor.element_size()
    )
    return number


def _fingerprint_by_hash(tensor: torch.Tensor) -> float | None:
    """The same without the kernel: other numbers, of which the same can be said."""
    if readable.kind(tensor) is not None or not (tensor.is_cpu and tensor.is_contiguous()):
        return None
    if tensor.is_conj() or tensor.is_neg():
        return None
    from hashlib import blake2b

    data = tensor.detach().reshape(-1).view(torch.uint8).numpy()
    words = len(data) // 8
    step = 1 if words <= MARKED else words // MARKED
    first = np.arange(0, words, step)
    # At places that differ from stretch to stretch, as the kernel does it.
    jitter = (first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)).astype(
        np.int64
    )
    places = first + jitter % np.minimum(step, words - first)
    some = data[: words * 8].reshape(-1, 8)[places].tobytes() + data[words * 8 :].tobytes()
    marks = blake2b(some, digest_size=6, key=str(len(data)).encode())
    return float(int.from_bytes(marks.digest(), "little"))
