"""Cells: the parts of a site's value that are changed one at a time."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from nethook.editing.tokens import Tokens
from nethook.errors import SweepError
from nethook.kinds.modules import unit_dim

Over: TypeAlias = str | Sequence[tuple[Any, ...]] | None
Index: TypeAlias = tuple[Any, ...]
_KINDS = ("positions", "heads", "units", "pixels")


@dataclass(frozen=True)
class Cell:
    """A part of a value: an index that counts rows as a dimension, or where it is True."""

    label: str
    index: Index | torch.Tensor
    rows: torch.Tensor | None = None  # the rows that have it; None: all of them
    along: tuple[int, int] | None = None  # the dimension and the number, where that is all it is

    def put(self, new: torch.Tensor, into: torch.Tensor) -> None:
        """Writes this part of a new value into another."""
        if isinstance(self.index, torch.Tensor):
            into.copy_(torch.where(self.index.to(into.device), new.to(into.dtype), into))
        else:
            into[self.index] = new[self.index].to(into.dtype)


def put_all(
    cells: Sequence[tuple[int, Cell]], new: torch.Tensor, into: torch.Tensor, batch: int
) -> None:
    """Writes parts of one new value into a batch of copies: (number of the copy, cell) each."""
    rows = new.shape[batch]
    new = new.to(into.dtype)
    dims = {cell.along[0] if cell.along is not None else None for _, cell in cells}
    dim = dims.pop()
    if len(cells) > 1 and not dims and dim is not None and dim != batch:
        # All at once: a write for each would take longer than what small models compute.
        copies = into.unflatten(batch, (-1, rows))
        copies = copies.movedim((batch, dim + (dim > batch)), (0, 1))
        numbers = torch.tensor([cell.along[1] for _, cell in cells if cell.along is not None])
        slots = torch.tensor([slot for slot, _ in cells])
        copies[slots, numbers] = new.movedim(dim, 0)[numbers]
        return
    for slot, cell in cells:
        cell.put(new, into.narrow(batch, slot * rows, rows))


def check_over(over: Over) -> str:
    """What cells are, in a word; an error where it is none of the forms."""
    if over is None:
        return ""
    if isinstance(over, str):
        if over not in _KINDS:
            raise SweepError(
                f"`over` must be None, one of {', '.join(map(repr, _KINDS))} or a list of index "
                f"tuples; got {over!r}."
            )
        return over
    if not isinstance(over, list | tuple) or not over or not all(map(_is_tuple, over)):
        raise SweepError(
            "`over` must be None, a word or a list of index tuples without the batch, such as "
            f"[(0,), (slice(1, 3),)]; got {over!r:.60}."
        )
    return "indices"


def _is_tuple(index: object) -> bool:
    return isinstance(index, tuple)


def cells_of(
    over: Over, value: torch.Tensor, batch: int, site: str, module: nn.Module | None, tokens: Tokens
) -> list[Cell]:
    """The cells of one site, for its value in the base run. `batch` is the dimension of rows."""
    if over is None:
        return [Cell("", (slice(None),) * value.ndim)]
    if over == "positions":
        return _positions(value, batch, site, tokens)
    if over == "heads":
        return _along(value, 1)
    if over == "units":
        dim = unit_dim(module, value.ndim)
        if dim is None or dim == batch:
            raise SweepError(f"the value at {site!r} has no units: {_shape(value)}.")
        return _along(value, dim)
    if over == "pixels":
        if value.ndim != 4 or batch != 0:
            raise SweepError(
                f"the value at {site!r} has no pixels: they are the last two dimensions of "
                f"(rows, channels, height, width); it has the shape {_shape(value)}."
            )
        height, width = value.shape[-2:]
        return [Cell(f"{y}, {x}", (..., y, x)) for y in range(height) for x in range(width)]
    assert not isinstance(over, str)
    return [_explicit(index, value, batch, site) for index in over]


def _explicit(index: Index, value: torch.Tensor, batch: int, site: str) -> Cell:
    whole = (*index[:batch], slice(None), *index[batch:])
    try:
        chosen = value[whole]
    except (IndexError, TypeError) as error:
        raise SweepError(
            f"the index {index!r} does not fit a row of {site!r}, whose value has the shape "
            f"{_shape(value)} with rows along dimension {batch}: {error}."
        ) from None
    if not chosen.numel():
        raise SweepError(f"the index {index!r} means nothing of {site!r}: {_shape(value)}.")
    return Cell(", ".join(map(_show, index)), whole)


def _show(part: object) -> str:
    if isinstance(part, torch.Tensor):  # as text, large ones would look alike
        shape = " × ".join(str(length) for length in part.shape)
        digest = zlib.crc32(part.cpu().contiguous().numpy().tobytes())
        return f"{shape} {'mask' if part.dtype == torch.bool else 'index'} {digest:08x}"
    if not isinstance(part, slice):
        return "…" if part is Ellipsis else str(part)
    ends = ["" if end is None else str(end) for end in (part.start, part.stop)]
    return ":".join(ends if part.step is None else [*ends, str(part.step)])


def _along(value: torch.Tensor, dim: int) -> list[Cell]:
    before = (slice(None),) * dim
    return [
        Cell(str(number), (*before, number), along=(dim, number))
        for number in range(value.shape[dim])
    ]


def _positions(value: torch.Tensor, batch: int, site: str, tokens: Tokens) -> list[Cell]:
    dim = position_dim(value, batch, tokens.length, site)
    places = tokens.positions.cpu()
    plain = places.shape[0] == 1 or bool((places == places[:1]).all())
    if plain and bool((places[0] >= 0).all()):
        return _along(value, dim)
    cells = []
    for position in range(int(tokens.counts.max())):
        chosen = places == position  # (rows, length)
        shape = [1] * value.ndim
        shape[batch], shape[dim] = chosen.shape
        # As the value has them: rows may stand behind the tokens.
        mask = (chosen if batch < dim else chosen.T).reshape(shape)
        there = chosen.any(1)
        rows = None if bool(there.all()) else there.expand(value.shape[batch])
        cells.append(Cell(str(position), mask, rows))
    return cells


def position_dim(value: torch.Tensor, batch: int, length: int, site: str) -> int:
    """The dimension of a value along which tokens are."""
    fits = [dim for dim in range(value.ndim) if dim != batch and value.shape[dim] == length]
    if value.ndim == 4 and 2 in fits and batch == 0:
        return 2  # (rows, heads, tokens, size), also where there are as many heads
    if not fits:
        raise SweepError(
            f"the value at {site!r} has no dimension of {length} tokens: {_shape(value)}. Choose "
            "sites before tokens are dropped or merged, or give index tuples."
        )
    return fits[0]


def _shape(value: torch.Tensor) -> tuple[int, ...]:
    return tuple(value.shape)
