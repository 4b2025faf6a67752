"""From a closed window to numbers with tags: blocks, the worst layers, or every series."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from nethook.runs import names
from nethook.runs.reading.results import Series
from nethook.sinks.blocks import blocks_of
from nethook.sinks.tags import COLUMNS, block_tag, layer_tag, series_tag
from nethook.stats.fields import INDEX, Counts, Matrix, finite_counts
from nethook.stats.sheet import Sheet

USUAL_RATIO: Final = 1e-3
"""An update by the parameter that it changes, in a training that goes well."""
MOST_LAYERS: Final = 8
"""Layers that are shown by name: those that stood out first."""


class Numbers:
    """What is made of each window. The series are told as they come."""

    def __init__(self) -> None:
        self._keys: list[tuple[str, str]] = []
        self._by_key: dict[tuple[str, str], int] = {}
        self._blocks: dict[str, str] | None = None
        self._named: list[str] = []  # layers that stood out

    def add_series(self, row: int, address: str, quantity: str) -> None:
        """A series and its row; one that is known changes nothing."""
        if row == len(self._keys):
            self._keys.append((address, quantity))
            self._by_key[address, quantity] = row
            self._blocks = None

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Address and quantity of each row."""
        return self._keys

    def few(self, window: Sheet) -> dict[str, float]:
        """The blocks and the worst layers of a window of training."""
        if window.phase != "train":
            return {}
        rows, seen = window.in_order()
        squares = _squares(rows, seen)
        return {**self._of_blocks(squares, rows, seen), **self._of_layers(squares, seen)}

    def all(self, window: Sheet) -> dict[str, float]:
        """Every series of a window, by column."""
        rows, seen = window.in_order()
        columns = _columns(rows)
        values = {}
        for row in np.flatnonzero(seen[: len(self._keys)] > 0).tolist():
            address, quantity = self._keys[row]
            if quantity not in names.PER_ELEMENT:
                values[series_tag(address, quantity, window.phase)] = float(columns["mean"][row])
                continue
            for name, column in columns.items():
                value = float(column[row])
                if not math.isnan(value) or name == "mean":
                    values[series_tag(address, quantity, window.phase, name)] = value
        return values

    def _of_blocks(self, squares: Matrix, rows: Matrix, seen: Counts) -> dict[str, float]:
        sums: dict[str, dict[str, float]] = {}
        counts: dict[str, float] = {}
        finite = finite_counts(rows)
        for block, quantity, row in self._in_blocks(len(seen)):
            if seen[row]:
                of_block = sums.setdefault(block, {})
                of_block[quantity] = of_block.get(quantity, 0.0) + float(squares[row])
                if quantity == names.OUTPUTS:
                    counts[block] = counts.get(block, 0.0) + float(finite[row] / seen[row])
        values = {}
        for block, of_block in sums.items():
            if names.PARAM_GRADS in of_block:
                norm = math.sqrt(of_block[names.PARAM_GRADS])
                values[block_tag(block, "grad_norm")] = norm
            if names.UPDATES in of_block and of_block.get(names.PARAMS):
                ratio = math.sqrt(of_block[names.UPDATES] / of_block[names.PARAMS])
                values[block_tag(block, "update_ratio")] = ratio
            if counts.get(block):
                rms = math.sqrt(of_block[names.OUTPUTS] / counts[block])
                values[block_tag(block, "outputs_rms")] = rms
        return values

    def _in_blocks(self, known: int) -> Iterator[tuple[str, str, int]]:
        if self._blocks is None:
            self._blocks = blocks_of(
                layer for layer, quantity in map(_layer, self._keys) if quantity
            )
        for row, key in enumerate(self._keys[:known]):
            layer, quantity = _layer(key)
            if quantity and layer in self._blocks:
                yield self._blocks[layer], quantity, row

    def _of_layers(self, squares: Matrix, seen: Counts) -> dict[str, float]:
        """The update ratios of the parameters that stand out, or once did."""
        ratios: dict[str, float] = {}
        for (address, quantity), row in self._by_key.items():
            if quantity == names.UPDATES and row < len(seen) and seen[row]:
                own = self._by_key.get((address, names.PARAMS))
                if own is not None and own < len(seen) and seen[own] and squares[own] > 0:
                    ratios[address] = math.sqrt(float(squares[row] / squares[own]))
        finite = {name: ratio for name, ratio in ratios.items() if 0 < ratio < math.inf}
        for worst in _furthest(finite):
            if worst not in self._named and len(self._named) < MOST_LAYERS:
                self._named.append(worst)
        return {
            layer_tag(name, "update_ratio"): ratios[name] for name in self._named if name in ratios
        }


def _layer(key: tuple[str, str]) -> tuple[str, str]:
    """The layer of a series, and its quantity; "" where it is in no block."""
    address, quantity = key
    if address.startswith("@"):
        return "", ""
    if quantity == names.OUTPUTS:
        return address, quantity if address else ""
    if quantity in (names.PARAMS, names.PARAM_GRADS, names.UPDATES):
        return address.rpartition(".")[0] or address, quantity
    return "", ""


def _furthest(ratios: Mapping[str, float]) -> list[str]:
    """The layers with the smallest and the largest ratio, the one further from usual first."""
    if not ratios:
        return []
    ends = {min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)}
    return sorted(ends, key=lambda name: -abs(math.log(ratios[name] / USUAL_RATIO)))


def _squares(rows: Matrix, seen: Counts) -> Matrix:
    """The sum of squares of each row, by the steps in which it was measured; NaN if not finite."""
    mean = rows[:, INDEX["mean"]] + rows[:, INDEX["mean_low"]]
    finite = finite_counts(rows)
    total: Matrix = rows[:, INDEX["m2"]] + finite * mean * mean
    odd = finite < rows[:, INDEX["count"]]
    return np.where(odd, np.nan, total / np.maximum(seen, 1))


def _columns(rows: Matrix) -> dict[str, Matrix]:
    """The columns that are shown, by name, as a reader of the run computes them."""
    none = np.zeros(0, dtype=np.int64)
    read = Series("", "", "", none, none, none, none, none.astype(bool), rows)
    return {name: read[name] for name in COLUMNS}
