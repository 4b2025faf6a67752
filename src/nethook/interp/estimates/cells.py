"""Cells: the parts of a point's value that a study tells apart."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.editing.tokens import tokens_of
from nethook.errors import OptionError
from nethook.interp.estimates.points import Point

Axis = Literal["positions", "heads", "units"]
_AXES = ("positions", "heads", "units")


@dataclass(frozen=True)
class Cells:
    """Which axes are told apart, and how many places each has over all points.

    `columns` (rows, tokens) says where each token stands in a padded batch, -1 where a row has
    fewer tokens; None where tokens and columns are the same.
    """

    axes: tuple[Axis, ...]
    sizes: tuple[int, ...]
    columns: torch.Tensor | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The cells by number: "3", or "head, position"; one empty text for the whole."""
        counts = [range(size) for size in self.sizes]
        if not counts:
            return ("",)
        if len(counts) == 1:
            return tuple(str(index) for index in counts[0])
        return tuple(f"{first}, {second}" for first in counts[0] for second in counts[1])

    @property
    def over(self) -> str:
        """What the cells are, as `Sweep.over` says it."""
        return "indices" if len(self.axes) > 1 else "".join(self.axes)

    def index(self, point: Point, value: torch.Tensor, cell: int) -> tuple[Any, ...] | None:
        """The index of a cell in a point's value; None where the point has no such cell."""
        index: list[Any] = [slice(None)] * value.ndim
        for axis, place in zip(self.axes, self._places(cell), strict=True):
            dim, count = dim_of(axis, point, value), count_of(axis, point, value)
            if place >= count:
                return None
            if axis == "heads":
                slots = point.slots(place, value.shape[1])
                index[dim] = slots[0] if len(slots) == 1 else slice(slots[0], slots[-1] + 1)
            elif axis == "positions" and self._is_padded(point, value):
                assert self.columns is not None
                there = self.columns[:, place] >= 0
                index[0], index[dim] = there.nonzero().flatten(), self.columns[there, place]
            else:
                index[dim] = place
        return tuple(index)

    def _is_padded(self, point: Point, value: torch.Tensor) -> bool:
        """Whether tokens have to be looked up among the columns of a value."""
        return (
            self.columns is not None
            and len(self.columns) == value.shape[0]
            and int(self.columns.max()) < value.shape[point.token_dim(value)]
        )

    def _aligned(self, point: Point, values: torch.Tensor) -> torch.Tensor:
        """Values with the first token of every row in the first column; NaN where there is none."""
        if "positions" not in self.axes or not self._is_padded(point, values):
            return values
        assert self.columns is not None
        dim = point.token_dim(values)
        shape = [1] * values.ndim
        shape[0], shape[dim] = self.columns.shape
        columns = self.columns.to(values.device).reshape(shape)
        wanted = [*values.shape]
        wanted[dim] = self.columns.shape[1]
        taken = values.gather(dim, columns.clamp(min=0).expand(wanted))
        return taken.masked_fill(columns < 0, torch.nan)

    def _places(self, cell: int) -> list[int]:
        places: list[int] = []
        for size in reversed(self.sizes):
            cell, place = divmod(cell, size)
            places.append(place)
        return places[::-1]

    def summed(self, point: Point, values: torch.Tensor) -> torch.Tensor:
        """Contributions of every element, added up per cell: (cells, rows); NaN: no such cell."""
        values = self._aligned(point, values)
        rows = values.shape[0]
        kept = [dim_of(axis, point, values) for axis in self.axes]
        rest = [dim for dim in range(1, values.ndim) if dim not in kept]
        total = values.permute(*kept, 0, *rest).reshape(*[values.shape[d] for d in kept], rows, -1)
        total = total.sum(-1)
        for number, axis in enumerate(self.axes):
            if axis == "heads":
                places = [point.slots(head, values.shape[1]) for head in range(point.heads)]
                groups = [
                    total.index_select(number, torch.tensor(each, device=total.device)).sum(number)
                    for each in places
                ]
                total = torch.stack(groups, number)
        out = total.new_full((*self.sizes, rows), torch.nan)
        out[tuple(slice(size) for size in total.shape[:-1])] = total
        return out.reshape(-1, rows)


def read_axes(over: Any) -> tuple[Axis, ...]:
    """`over` as axes."""
    axes = () if over is None else (over,) if isinstance(over, str) else tuple(over)
    wrong = [axis for axis in axes if axis not in _AXES]
    if wrong or len(axes) > 2 or len(set(axes)) < len(axes):
        raise OptionError(
            '`over` must be None, "positions", "heads", "units", or two of them, as in '
            f'over=("heads", "positions"); got {over!r}.'
        )
    return axes


def cells_of(
    axes: tuple[Axis, ...],
    points: Sequence[Point],
    values: dict[Point, Any],
    columns: torch.Tensor | None = None,
) -> Cells:
    """The cells of several points: as many as the largest has; of padded texts, as many tokens."""
    sizes = [max(count_of(axis, p, values[p]) for p in points) for axis in axes]
    if columns is not None and "positions" in axes:
        sizes[axes.index("positions")] = columns.shape[1]
    return Cells(axes, tuple(sizes), columns)


def token_columns(model: nn.Module, inputs: Inputs) -> torch.Tensor | None:
    """Where each token of padded texts stands, (rows, tokens); None where nothing is padded."""
    names = [
        parameter.name
        for parameter in inspect.signature(type(model).forward).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ][1:]
    tokens = tokens_of(dict(zip(names, inputs.args, strict=False)) | dict(inputs.kwargs))
    if tokens is None or bool((tokens.positions >= 0).all()):
        return None
    rows, counts = len(tokens.positions), (tokens.positions >= 0).sum(1)
    columns = torch.full((rows, int(counts.max())), -1)
    for row, places in enumerate(tokens.positions.cpu()):
        real = (places >= 0).nonzero().flatten()
        columns[row, : len(real)] = real
    return columns


def dim_of(axis: Axis, point: Point, value: torch.Tensor) -> int:
    """The dimension of an axis in a point's value."""
    dim = {"heads": 1, "positions": point.token_dim(value), "units": _unit_dim(value)}[axis]
    if not 0 < dim < value.ndim:
        raise OptionError(
            f"`over` must be an axis that every value has; got {axis!r}, and {point.name!r} has "
            f"the shape {tuple(value.shape)}."
        )
    return dim


def count_of(axis: Axis, point: Point, value: torch.Tensor) -> int:
    """How many places an axis has in a point's value."""
    if axis == "heads":
        return point.heads
    return int(value.shape[dim_of(axis, point, value)])


def _unit_dim(value: torch.Tensor) -> int:
    return 1 if value.ndim in (4, 5) else value.ndim - 1
