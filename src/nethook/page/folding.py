"""Rows of a heatmap grouped by the module tree: what is folded is one row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nethook.drawing.data import Floats, Grid

READABLE: Final = 40
"""Rows that can be read at once: a deeper model is folded until it has no more."""


@dataclass(frozen=True)
class Row:
    """A row that is shown: an address, or a folded group of `count` of them."""

    name: str
    places: tuple[int, ...]
    folded: bool

    @property
    def label(self) -> str:
        """How the row is called."""
        return f"▸ {self.name} ({len(self.places)})" if self.folded else self.name


def groups_of(rows: Sequence[str], leaves: Collection[str] = ()) -> dict[str, list[int]]:
    """Every module that has several rows in it, and which: from the outermost, as they ran.

    `leaves` are modules without modules in them. Their few parameters are not worth folding.
    """
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        parts = row.split(".")
        for depth in range(1, len(parts)):
            groups.setdefault(".".join(parts[:depth]), []).append(index)
    several = {
        name: places for name, places in groups.items() if len(places) > 1 and name not in leaves
    }
    # Of modules that hold the very same rows the innermost is enough.
    kept: dict[str, list[int]] = {}
    for name, places in several.items():
        inner = any(
            other.startswith(f"{name}.") and len(several[other]) == len(places) for other in several
        )
        if not inner:
            kept[name] = places
    return kept


def first_folds(rows: Sequence[str], groups: dict[str, list[int]]) -> set[str]:
    """Which groups are folded before anybody has chosen: as few as leave a readable number."""
    if len(rows) <= READABLE:
        return set()
    chosen: set[str] = set()
    for depth in range(1, 1 + max((name.count(".") + 1 for name in groups), default=0)):
        folds = {name for name in groups if name.count(".") + 1 == depth}
        # Groups of this depth, and shallower ones that have none of this depth in them.
        deeper = folds | {
            name
            for name in groups
            if name.count(".") + 1 < depth and not any(f.startswith(f"{name}.") for f in folds)
        }
        if not chosen or len(visible(rows, groups, deeper)) <= READABLE:
            chosen = deeper
        else:
            break
    return chosen


def visible(rows: Sequence[str], groups: dict[str, list[int]], folds: set[str]) -> list[Row]:
    """The rows that are shown when these groups are folded, in order of execution."""
    outer = {name for name in folds if name in groups}
    outer = {name for name in outer if not any(name.startswith(f"{other}.") for other in outer)}
    of = {index: name for name in outer for index in groups[name]}
    shown, given = [], set()
    for index, row in enumerate(rows):
        name = of.get(index)
        if name is None:
            shown.append(Row(row, (index,), folded=False))
        elif name not in given:
            given.add(name)
            shown.append(Row(name, tuple(groups[name]), folded=True))
    return shown


def fold_grid(grid: Grid, shown: Sequence[Row]) -> Grid:
    """A grid of these rows: of a group the greatest of the greatest, the least of the least."""
    if all(not row.folded for row in shown):
        return grid
    signed = grid.quantity.scale == "signed"
    same = grid.least is grid.greatest and not signed
    greatest = np.stack([_reduce(grid.greatest, row, np.fmax) for row in shown])
    least = np.stack([_reduce(grid.least, row, np.fmin) for row in shown])
    last = np.stack(
        [_furthest(grid.last, row) if signed else _reduce(grid.last, row, np.fmax) for row in shown]
    )
    if same and np.array_equal(least, greatest, equal_nan=True):
        least = greatest
    labels = [row.label for row in shown]
    return Grid(
        grid.quantity, labels, grid.first_step, grid.last_step, least, greatest, last, grid.note
    )


def _reduce(values: Floats, row: Row, function: np.ufunc) -> Floats:
    reduced: Floats = function.reduce(values[list(row.places)], axis=0)
    return reduced


def _furthest(values: Floats, row: Row) -> Floats:
    """The value that is farthest from zero."""
    rows = values[list(row.places)]
    size = np.where(np.isnan(rows), -1.0, np.abs(rows))
    largest: Floats = rows[size.argmax(axis=0), np.arange(rows.shape[1])]
    return largest
