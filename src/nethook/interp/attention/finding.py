"""Attention in a forward: where it happens, and what it is given.

A head is an index along dimension 1 of what the attention operation returns, (batch, heads,
queries, size). No configuration is read. Three forms are known:

- `F.scaled_dot_product_attention`;
- a softmax (batch, heads, queries, keys) that a product with the values follows, as attention that
  is written out in Python;
- `F.multi_head_attention_forward` of `nn.MultiheadAttention`, in which the output projection is
  part of the one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.interp.attention.multihead import taken_apart
from nethook.kinds.operations import ATTENTION, FUSED_ATTENTION, PASS, PRODUCTS
from nethook.torch_private import base_of

Form = Literal["fused", "written out", "nn.MultiheadAttention"]
_ARGUMENTS = ("query", "key", "value")
_DIMS_OF_A_WEIGHT = 2  # at least


@dataclass
class Found:
    """One attention of a forward: tensors are (batch, heads, tokens, size)."""

    op: str
    module: str
    form: Form
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    heads: int
    merged: bool = False  # the operation has batch and heads in one dimension
    scores: str = ""  # written out: where the scores and the probabilities are
    probabilities: str = ""
    output: str = ""  # where the heads are mixed
    calls: int = 1
    projections: list[Projected] = field(default_factory=list)  # that ran since the last attention


@dataclass(frozen=True, eq=False)
class Projected:
    """What a product with a weight returned: a leaf of the graph, so that gradients end there."""

    where: str
    leaf: torch.Tensor
    inputs: int


class Finder(OpConsumer):
    """Notes every attention; with `cut`, it cuts the graph behind every product with a weight."""

    def __init__(self, *, cut: bool = True) -> None:
        self.found: dict[str, Found] = {}
        self.unsplit: dict[str, str] = {}  # by module: attention whose rows and heads are one
        self._cuts = cut
        self._projections: list[Projected] = []
        self._awaiting: Found | None = None  # its heads have not been mixed yet
        self._scores: list[tuple[Op, torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._soft: list[tuple[Op, torch.Tensor]] = []  # probabilities, also cast or reshaped

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> Any:  # fmt: skip
        """An operation has run."""
        if not isinstance(result, torch.Tensor) and op.name != ATTENTION:
            return None
        if op.name == FUSED_ATTENTION:
            given = dict(zip(_ARGUMENTS, args, strict=False)) | kwargs
            if given["query"].ndim == 4:
                self._note(op, "fused", given["query"], given["key"], given["value"])
        elif op.name == ATTENTION:
            self._note_multihead(op, args, kwargs)
        elif op.name == "softmax" and result.ndim in (3, 4):
            self._soft = [(op, result)]
        elif self._soft and op.name in PASS and any(args[0] is s for _, s in self._soft):
            self._soft.append((self._soft[0][0], result))
        elif op.name in PRODUCTS:
            return self._product(op, [tensor for _, tensor in tensors((args, kwargs))], result)
        return None

    def _product(self, op: Op, given: list[torch.Tensor], result: torch.Tensor) -> Any:
        if any(_is_weight(t) for t in given):
            return self._cut(op, given, result)
        soft = next((soft for _, soft in self._soft for t in given if t is soft), None)
        if soft is not None:
            self._note_written(op, next(t for t in given if t is not soft and t.ndim > 2), result)
        elif len(given) >= 2 and result.ndim in (3, 4):
            self._scores = [*self._scores[-3:], (op, given[-2], given[-1], result)]
        return None

    def _cut(self, op: Op, given: list[torch.Tensor], result: torch.Tensor) -> torch.Tensor | None:
        data = next((t for t in given if not _is_weight(t) and t.ndim >= 2), result)
        where = op.place.address if _owns_weight(op) else op.address
        if self._awaiting is not None:
            found = self._awaiting
            if data.shape[-1] == found.heads * found.value.shape[-1]:
                found.output, self._awaiting = where, None
        if not self._cuts:
            return None
        leaf = result.detach().requires_grad_()
        self._projections.append(Projected(where, leaf, data.shape[-1]))
        return leaf.clone()  # a leaf must not be written in place

    def _note(
        self, op: Op, form: Form, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> Found:
        known = self.found.get(op.address)
        if known is not None:
            known.calls += 1
            self._projections = []
            return known
        found = Found(op.address, op.place.address, form, query, key, value, query.shape[1])
        found.projections, self._projections = self._projections, []
        self.found[op.address] = self._awaiting = found
        return found

    def _note_written(self, op: Op, value: torch.Tensor, result: torch.Tensor) -> None:
        softmax, probs = self._soft[0]
        self._soft = []
        if probs.ndim == 3:  # how many of its rows are heads cannot be seen
            if result.shape[:2] == probs.shape[:2]:
                self.unsplit.setdefault(op.place.address, op.address)
            return
        batch, heads, queries, keys = probs.shape
        shapes = ((batch, heads, queries, keys), (batch * heads, queries, keys))
        scores = next((each for each in reversed(self._scores) if each[3].shape in shapes), None)
        if scores is None:
            return
        where, query, key, _ = scores
        merged = result.ndim == 3
        query, key, value = (
            t.unflatten(0, (batch, heads)) if t.ndim == 3 else t for t in (query, key, value)
        )
        if key.shape[-1] == keys:
            key = key.transpose(-2, -1)
        found = self._note(op, "written out", query, key, value)
        found.scores, found.probabilities = where.address, softmax.address
        found.merged = merged

    def _note_multihead(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        parts = taken_apart(args, kwargs)
        found = self._note(op, "nn.MultiheadAttention", parts.query, parts.key, parts.value)
        found.output, self._awaiting = f"{op.place.address}.out_proj".lstrip("."), None


def _is_weight(tensor: torch.Tensor) -> bool:
    """Whether it is a weight or a view of one: `weight.T` is no operation, and no parameter."""
    base = base_of(tensor)
    whole = tensor if base is None else base
    return isinstance(whole, nn.Parameter) and whole.ndim >= _DIMS_OF_A_WEIGHT


def _owns_weight(op: Op) -> bool:
    module = op.place.module
    return module is not None and not any(True for _ in module.children())
