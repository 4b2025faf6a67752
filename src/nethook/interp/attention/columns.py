"""Which columns of a projection belong to which head: found by gradient, so no table is needed.

The gradient of one head of an argument, with respect to what the projection returned, is non-zero
exactly in that head's columns, however the model lays them out: `[q|k|v]`, `[head][q, k, v]`,
`[group][q … q, k, v]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from nethook.interp.attention.finding import Found, Projected

_SEED = 0


@dataclass(frozen=True)
class Projection:
    """Where an argument of an attention is computed, and each head's columns of the result.

    Several heads that share their columns are one head of keys and values. `columns` is None where
    every head depends on all of them: the model normalises across heads.
    """

    address: str
    columns: tuple[tuple[int, ...], ...] | None

    def __repr__(self) -> str:
        return f"{self.address} {self.shown()}".strip()

    def shown(self) -> str:
        """The columns of the first head, and how many heads have some of their own."""
        if self.columns is None:
            return "(all columns in every head)"
        return f"[{_runs(self.columns[0])}, …]" if len(self.columns) > 1 else ""


def projection_of(found: Found, argument: torch.Tensor) -> tuple[Projection | None, list[int]]:
    """Where an argument comes from, and which of its heads are which head of the projection.

    Cost: one small backward per head.
    """
    heads = argument.shape[1]
    leaves = [each.leaf for each in found.projections]
    if not argument.requires_grad or not leaves:
        return None, list(range(heads))
    random = torch.Generator(argument.device).manual_seed(_SEED)
    weights = torch.rand(argument.shape, generator=random, device=argument.device) + 0.5
    by_head: list[tuple[int, tuple[int, ...]]] = []
    for head in range(heads):
        only = torch.zeros_like(argument)
        only[:, head] = weights[:, head].to(argument.dtype)
        grads: Sequence[torch.Tensor | None] = torch.autograd.grad(
            argument, leaves, only, retain_graph=True, allow_unused=True
        )
        reached = [(index, grad) for index, grad in enumerate(grads) if grad is not None]
        reached = [(index, grad) for index, grad in reached if bool((grad != 0).any())]
        if len(reached) != 1:
            return None, list(range(heads))  # several projections are mixed, or there is none
        index, grad = reached[0]
        columns = (grad != 0).flatten(0, -2).any(0).nonzero().flatten().tolist()
        by_head.append((index, tuple(columns)))
    projected: Projected = found.projections[by_head[0][0]]
    own = list(dict.fromkeys(columns for _, columns in by_head))
    if len(own) > 1 and len(set().union(*own)) < sum(map(len, own)):
        return Projection(projected.where, None), list(range(heads))
    if len(own) == 1 and heads > 1 and len(own[0]) > argument.shape[-1]:
        return Projection(projected.where, None), list(range(heads))
    return Projection(projected.where, tuple(own)), [own.index(columns) for _, columns in by_head]


def _runs(columns: tuple[int, ...]) -> str:
    """Columns as slices: 0:8, 24:32."""
    runs: list[list[int]] = []
    for column in columns:
        if runs and runs[-1][1] == column:
            runs[-1][1] = column + 1
        else:
            runs.append([column, column + 1])
    shown = [f"{first}:{last}" for first, last in runs[:3]]
    return ", ".join(shown) + (" …" if len(runs) > 3 else "")
