"""Scores of attention that is written out, computed again for other queries or keys.

Between the product that gives the scores and their softmax a model may scale, cap, mask or bias
them. What it did is written down once, operation by operation, and done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, replace, tensors
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.interp.attention.heads import Attention
from nethook.interp.attention.running import run_once
from nethook.interp.estimates.points import argument, as_given, split_heads

Call = tuple[Callable[..., Any], Any, Any]  # function, (args, kwargs), result


@dataclass
class Scores:
    """One attention of the base run, from its queries and keys to what its softmax is given."""

    attention: Attention
    product: Call
    calls: list[Call] = field(default_factory=list)
    softmax: torch.Tensor | None = None  # its argument
    value: torch.Tensor | None = None  # (batch, heads, keys, size)

    def again(
        self, query: torch.Tensor | None = None, key: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What the softmax is given, (batch, heads, queries, keys), with other queries or keys."""
        function, given, result = self.product
        for part, new in (("q", query), ("k", key)):
            if new is not None:
                path, value = argument(part, given)
                given = replace(given, path, as_given(part, new.to(value.dtype), value))
        made: dict[int, torch.Tensor] = {id(result): function(*given[0], **given[1])}

        def now(tensor: torch.Tensor) -> torch.Tensor:
            return made.get(id(tensor), tensor)

        for function, given, result in self.calls:
            args, kwargs = map_tensors(now, given)
            made[id(result)] = function(*args, **kwargs)
        assert self.softmax is not None
        return made[id(self.softmax)]


class _Tape(OpConsumer):
    """Writes down what is done to the scores of attentions."""

    def __init__(self, rows: Sequence[Attention]) -> None:
        self._starts = {row.scores: row for row in rows}
        self._open: list[tuple[Scores, set[int]]] = []
        self.found: dict[str, Scores] = {}  # by address of the attention

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> None:  # fmt: skip
        """An operation has run."""
        given = (args, dict(kwargs))
        if op.address in self._starts:
            row = self._starts[op.address]
            self.found[row.address] = scores = Scores(row, (function, given, result))
            self._open.append((scores, {id(result)}))
            return
        if op.address in self.found:
            scores = self.found[op.address]
            scores.value = split_heads(scores.attention, "v", argument("v", given)[1])
        for scores, live in list(self._open):
            touched = [tensor for _, tensor in tensors(given) if id(tensor) in live]
            if touched and op.address == scores.attention.probabilities:
                scores.softmax = touched[0]
                self._open.remove((scores, live))
            elif touched:
                scores.calls.append((function, given, result))  # keeps the tensors and their ids
                live.update(id(tensor) for _, tensor in tensors(result))


def written_scores(
    model: nn.Module, inputs: Inputs, rows: Sequence[Attention]
) -> dict[str, Scores]:
    """The scores of written-out attentions in the base run, by address.

    Cost: one forward.
    """
    tape = _Tape(rows)
    run_once(model, inputs, tape, "nethook.interp.attribute")
    return {name: each for name, each in tape.found.items() if each.softmax is not None}
