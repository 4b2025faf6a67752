"""Points: the values that a study reads and changes, whatever they are.

A point is the output of a module or an operation, or one part of an attention: `z` (what its heads
return), `q`, `k` or `v` (what the operation is given). All points of a study are attached by one
edit, which hands each value to a function and puts back what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from nethook.addresses.nested import replace, tensors
from nethook.editing.scope import EditScope, edit
from nethook.errors import OptionError
from nethook.interp.attention.heads import Attention
from nethook.interp.attention.multihead import taken_apart, with_heads

Part = Literal["output", "z", "q", "k", "v"]
Seen = Callable[["Point", torch.Tensor], torch.Tensor | None]
Called = Callable[[str, tuple[Any, ...], dict[str, Any]], None]
_ARGUMENTS = {"q": (0, "query"), "k": (1, "key"), "v": (2, "value")}


@dataclass(frozen=True)
class Point:
    """One value of a forward."""

    site: str
    part: Part = "output"
    attention: Attention | None = None
    rows_dim: int = 0  # of the value as the model has it: those who see it find rows first

    @property
    def name(self) -> str:
        """The address, with the part of an attention where it is not what its heads return."""
        return f"{self.site} ({self.part})" if self.part in ("q", "k", "v") else self.site

    @property
    def heads(self) -> int:
        """How many heads it has; 0 where it is no part of an attention."""
        if self.attention is None:
            return 0
        return self.attention.kv_heads if self.part in ("k", "v") else self.attention.heads

    def slots(self, head: int, there: int) -> list[int]:
        """Where a head is along dimension 1 of a value with so many places there."""
        attention = self.attention
        if attention is None or self.part not in ("k", "v") or there == attention.kv_heads:
            return [head]
        return list(attention.queries_of(head))  # keys that were repeated for every query head

    def token_dim(self, value: torch.Tensor) -> int:
        """The dimension of tokens."""
        return 1 if self.attention is None else value.ndim - 2


def head_points(found: Sequence[Attention], part: Part) -> list[Point]:
    """A part of each attention, as points."""
    if part not in ("z", "q", "k", "v"):
        raise OptionError(f'`part` must be "z", "q", "k" or "v" with heads; got {part!r}.')
    return [Point(row.address, part, row) for row in found]


def attach(
    model: nn.Module,
    points: Sequence[Point],
    seen: Seen,
    *,
    gates: dict[str, Any] | None = None,
    called: Called | None = None,
) -> EditScope:
    """An edit that hands the value of every point to `seen(point, value)`; None leaves it.

    `gates` are edits of outputs that apply before; `called` is told the arguments of attentions.
    """
    outputs: dict[str, Any] = {name: [gate] for name, gate in (gates or {}).items()}
    by_op: dict[str, list[Point]] = {}
    for point in points:
        if point.attention is None:
            outputs.setdefault(point.site, []).append(_of_output(point, seen))
        else:
            by_op.setdefault(_operation(point), []).append(point)
    answers = {op: _of_attention(inside, seen, called) for op, inside in by_op.items()}
    return edit(model, outputs=outputs, answers=answers)


def _operation(point: Point) -> str:
    """Where a part of an attention is an argument or a result: the scores have q and k."""
    row = point.attention
    written = row is not None and row.form == "written out" and point.part in ("q", "k")
    return row.scores if row is not None and written else point.site


def _of_output(point: Point, seen: Seen) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        inside = tensors(value)
        if not inside:
            raise OptionError(f"{point.site!r} returned no tensor that could be studied.")
        path, first = inside[0]
        new = seen(point, first.transpose(0, point.rows_dim))
        return None if new is None else replace(value, path, new.transpose(0, point.rows_dim))

    return change


def _of_attention(points: list[Point], seen: Seen, called: Called | None) -> Callable[..., Any]:
    attention = points[0].attention
    assert attention is not None
    by_part = {point.part: point for point in points}
    z = by_part.get("z")

    def heads(value: torch.Tensor) -> torch.Tensor | None:
        assert z is not None
        if not attention.merged:
            return seen(z, value)
        new = seen(z, value.unflatten(0, (-1, attention.heads)))
        return None if new is None else new.flatten(0, 1)

    if attention.form == "nn.MultiheadAttention":
        return _of_multihead(by_part, seen, heads if z is not None else None, called)
    if attention.form == "written out":
        return _of_written(by_part, attention, seen, heads if z is not None else None)

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any], compute: Any) -> Any:
        if called is not None:
            called(points[0].site, args, kwargs)
        for part, (index, name) in _ARGUMENTS.items():
            if part not in by_part:
                continue
            value = kwargs[name] if name in kwargs else args[index]
            new = seen(by_part[part], value)
            if new is None:
                continue
            if name in kwargs:
                kwargs = {**kwargs, name: new}
            else:
                args = (*args[:index], new, *args[index + 1 :])
        result = compute(*args, **kwargs)
        new = heads(result) if z is not None else None
        return result if new is None else new

    return answer


def _of_multihead(
    by_part: dict[Part, Point], seen: Seen, heads: Any, called: Called | None
) -> Callable[..., Any]:
    """One operation projects, attends and mixes: with other q, k or v it attends anew."""
    site = next(iter(by_part.values())).site
    mixing = with_heads(heads) if heads is not None else None

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any], compute: Any) -> Any:
        asked = [part for part in ("q", "k", "v") if part in by_part]
        if asked or called is not None:
            parts = taken_apart(args, kwargs)
            own = {"q": parts.query, "k": parts.key, "v": parts.value}
            if called is not None:
                named = {"query": parts.query, "key": parts.key, "value": parts.value}
                called(site, (), {**named, "attn_mask": parts.scores_beside})
            new = {
                part: value
                for part in asked
                if (value := seen(by_part[part], own[part])) is not None
            }
            if new:
                args, kwargs = (), parts.again(new)
        return compute(*args, **kwargs) if mixing is None else mixing(args, kwargs, compute)

    return answer


def _of_written(
    by_part: dict[Part, Point], attention: Attention, seen: Seen, heads: Any
) -> Callable[..., Any]:
    """The product that gives the scores has q and k; the one that mixes has v, and returns z."""

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any], compute: Any) -> Any:
        given = (args, dict(kwargs))
        for part in ("q", "k", "v"):
            if part not in by_part:
                continue
            path, value = argument(part, given)
            new = seen(by_part[part], split_heads(attention, part, value))
            if new is not None:
                given = replace(given, path, as_given(part, new, value))
        result = compute(*given[0], **given[1])
        new = heads(result) if heads is not None else None
        return result if new is None else new

    return answer


def argument(part: str, given: Any) -> tuple[Any, torch.Tensor]:
    """Where a part is among the arguments of its product: q before k, v after the weights."""
    inside = tensors(given)
    return inside[-2] if part == "q" else inside[-1]


def split_heads(attention: Attention, part: str, value: torch.Tensor) -> torch.Tensor:
    """An argument of a product as (batch, heads, tokens, size)."""
    split = value.unflatten(0, (-1, attention.heads)) if value.ndim == 3 else value
    split = split.transpose(-2, -1) if part == "k" else split
    size = attention.value_size if part == "v" else attention.size
    if split.ndim != 4 or split.shape[-1] != size or split.shape[1] != attention.heads:
        raise OptionError(
            f"the {part} of {attention.address!r} is laid out as {tuple(value.shape)}, which is "
            "not (batch, heads, tokens, size). Study what its heads return (part='z')."
        )
    return split


def as_given(part: str, new: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """The reverse: in the layout of the argument."""
    new = new.transpose(-2, -1) if part == "k" else new
    return new.flatten(0, 1) if value.ndim == 3 else new
