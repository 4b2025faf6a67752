"""Where the rows of a batch are in a value: first, but in some models behind the tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.interp.estimates.gradients import Values
from nethook.interp.estimates.points import Point, attach
from nethook.interp.rows import repeat_rows
from nethook.restoring.copies import own_inputs

Metric = Callable[[Any], torch.Tensor]


def rows_first(model: nn.Module, inputs: Inputs, values: Values, rows: int) -> tuple[Values, int]:
    """The values with their rows first, each at a point that says where its rows are.

    `inputs` and `values` are those of one run of so many rows. Also how many forwards it took:
    none where the shapes tell; otherwise one with every row twice, in which one dimension is twice
    as long.
    """
    unsure = [point for point, value in values.items() if _is_unsure(point, value, rows)]
    if not unsure:
        return values, 0
    doubled: dict[Point, torch.Size] = {}

    def note(point: Point, value: torch.Tensor) -> None:
        doubled[point] = value.shape

    with torch.no_grad(), attach(model, unsure, note):
        repeat_rows(own_inputs(inputs), 2, rows).call(model)
    found: Values = {}
    for point, value in values.items():
        longer = [
            dim
            for dim, size in enumerate(doubled.get(point, value.shape))
            if size == 2 * value.shape[dim]
        ]
        dim = longer[0] if longer else 0
        found[dataclasses.replace(point, rows_dim=dim)] = value.transpose(0, dim)
    return found, 1


def _is_unsure(point: Point, value: torch.Tensor, rows: int) -> bool:
    """Whether another dimension than the first may be that of rows; heads are behind them."""
    if point.attention is not None or value.ndim < 3:
        return False
    return value.shape[0] != rows or rows in value.shape[1:-1]
