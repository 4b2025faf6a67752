"""Data in batches: what every study over many samples runs a model on.

One batch (a tensor, a tuple, a mapping, `nethook.inputs(...)`) is cut into pieces of rows; a loader
or a list of batches is taken as it comes, without its labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.errors import InputsError, OptionError
from nethook.extracting.batches import split_batch

ROWS = 64
"""Rows of one batch that run at once."""


def batches(data: Any, name: str = "data", rows: int = ROWS) -> Iterator[Inputs]:
    """The inputs of each batch, in order."""
    if is_one(data):
        yield from pieces(as_inputs(data), rows)
        return
    if not isinstance(data, Iterable) or isinstance(data, str):
        raise OptionError(
            f"`{name}` must be inputs (a tensor, a tuple, a mapping, nethook.inputs(...)) or a "
            f"loader of batches; got {type(data).__name__}."
        )
    empty = True
    for batch in data:
        empty = False
        yield split_batch(batch, None).inputs
    if empty:
        raise InputsError(f"`{name}` must have at least one batch; got none.")


def count_of(data: Any, rows: int = ROWS) -> int | None:
    """How many batches there are, where that is known."""
    if is_one(data):
        return -(-rows_of(as_inputs(data)) // rows)
    try:
        return len(data)
    except TypeError:
        return None


def is_one(data: Any) -> bool:
    """Whether these are the inputs of one call, and not several batches."""
    return isinstance(data, torch.Tensor | tuple | Mapping | Inputs)


def rows_of(inputs: Inputs) -> int:
    """The number of rows: the length of the first tensor."""
    first = next((t for _, t in tensors((inputs.args, dict(inputs.kwargs))) if t.ndim), None)
    if first is None:
        raise InputsError("`inputs` must hold a tensor with rows; got none.")
    return first.shape[0]


def pieces(inputs: Inputs, rows: int) -> Iterator[Inputs]:
    """One batch in pieces of at most `rows` rows; tensors without these rows are shared."""
    count = rows_of(inputs)
    for start in range(0, count, rows):
        if count <= rows:
            yield inputs
            return
        yield some_rows(inputs, slice(start, start + rows), count)


def some_rows(inputs: Inputs, chosen: slice | torch.Tensor, count: int) -> Inputs:
    """Some rows of every tensor that has `count` of them."""

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        return tensor[chosen] if tensor.ndim and tensor.shape[0] == count else tensor

    return Inputs(map_tensors(cut, inputs.args), map_tensors(cut, dict(inputs.kwargs)))
