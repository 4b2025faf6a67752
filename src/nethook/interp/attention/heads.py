"""`heads`: every attention of a model, with its heads, found by running once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.attention.columns import Projection, projection_of
from nethook.interp.attention.finding import Finder, Form, Found
from nethook.interp.attention.running import run_once
from nethook.text.table import Table


@dataclass(frozen=True)
class Attention:
    """One attention: where it is, and what its heads are.

    `address` is the operation whose output has the heads in dimension 1 (the one that also mixes
    them, for `nn.MultiheadAttention`). Heads of queries, and of what the attention returns, are
    counted 0 to `heads - 1`; heads of keys and values 0 to `kv_heads - 1`. Query head h reads
    key/value head `group_of[h]`.
    """

    address: str
    module: str
    form: Form
    heads: int
    kv_heads: int
    size: int
    value_size: int
    output: str  # where the heads are mixed; "" if that was not found
    query: Projection | None
    key: Projection | None
    value: Projection | None
    group_of: tuple[int, ...] = field(repr=False)
    scores: str = field(default="", repr=False)
    probabilities: str = field(default="", repr=False)
    merged: bool = field(default=False, repr=False)  # its output is (batch · heads, queries, size)
    calls: int = 1

    def queries_of(self, kv_head: int) -> tuple[int, ...]:
        """The query heads that read one head of keys and values."""
        return tuple(head for head, group in enumerate(self.group_of) if group == kv_head)

    def check_head(self, head: int, part: str = "z") -> None:
        """Raises where there is no such head, or where a query head stands for shared keys."""
        count = self.kv_heads if part in ("k", "v") else self.heads
        if type(head) is int and 0 <= head < count:
            return
        shared = (
            f" Its {self.heads} query heads share {self.kv_heads} heads of keys and values, so the "
            f"{'keys' if part == 'k' else 'values'} of one query head are not its own: name the "
            f"group, {self.group_of[head]}."
            if part in ("k", "v") and type(head) is int and count <= head < self.heads
            else ""
        )
        raise OptionError(
            f"`head` must be a number from 0 to {count - 1} for {self.address!r}; got {head!r}."
            f"{shared}"
        )


@dataclass(frozen=True, repr=False)
class Heads:
    """All attentions of a forward, in order of execution.

    found = interp.heads(model, tokens)
    found["transformer.h.3.attn"].heads        by module or by operation
    [row.address for row in found]
    """

    rows: tuple[Attention, ...]

    def __getitem__(self, where: str | int) -> Attention:
        """The attention at an address: of the operation, its module, or a module around it."""
        if isinstance(where, int):
            return self.rows[where]
        exact = [row for row in self.rows if where in (row.address, row.module)]
        inside = [row for row in self.rows if row.module.startswith(f"{where}.")]
        found = exact or inside
        if len(found) == 1:
            return found[0]
        what = "no attention" if not found else f"{len(found)} attentions"
        names = ", ".join(repr(row.address) for row in (found or self.rows)[:4])
        raise NoSuchSiteError(f"there is {what} at {where!r}; name one of {names}.")

    def __iter__(self) -> Iterator[Attention]:
        return iter(self.rows)

    def __len__(self) -> int:
        """How many attentions there are."""
        return len(self.rows)

    def table(self) -> Table:
        """The heads as a table."""
        rows = [
            (
                row.address, row.form, str(row.heads), str(row.kv_heads), str(row.size),
                row.output or "–",
                *("–" if part is None else repr(part) for part in (row.query, row.key, row.value)),
            )
            for row in self.rows
        ]  # fmt: skip
        columns = ("attention", "form", "heads", "kv", "size", "output", "q", "k", "v")
        title = f"{len(rows)} attentions" if len(rows) != 1 else "1 attention"
        return Table(title, columns, rows, right=frozenset({"heads", "kv", "size"}))

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def heads(model: nn.Module, inputs: Any) -> Heads:
    """Every attention of a model: address, heads, key/value heads, projections and their columns.

        interp.heads(model, tokens)
        interp.heads(model, tokens)["transformer.h.3.attn"].kv_heads

    The model runs once in evaluation, and everything is left as it was. No configuration and no
    names are read: heads are dimension 1 of the attention operation, and which columns of a
    projection belong to a head is found by gradient (docs/study-attention.md).

    Arguments:
        model: any `nn.Module`.
        inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.

    Returns:
        A table of `Attention`, by position or by address.

    Raises:
        NoSuchSiteError: where the forward has no attention.

    Cost: one forward with gradients, and three small backward passes per head.
    """
    finder = Finder()
    run_once(model, inputs, finder, "nethook.interp.heads", grad=True)
    if not finder.found:
        raise NoSuchSiteError(
            "this forward has no attention: it called neither F.scaled_dot_product_attention nor "
            "nn.MultiheadAttention, and no softmax of (batch, heads, queries, keys) was followed "
            "by a product with values."
        )
    return Heads(tuple(_attention(found) for found in finder.found.values()))


def _attention(found: Found) -> Attention:
    query: Projection | None
    key: Projection | None
    value: Projection | None
    if found.form == "nn.MultiheadAttention":
        count, size = found.heads, found.query.shape[-1]
        width = count * size
        parts = [
            Projection(f"{found.module}.in_proj_weight".lstrip("."), _blocks(count, size, first))
            for first in (0, width, 2 * width)
        ]
        groups = list(range(count))
        query, key, value = parts
    else:
        with torch.enable_grad():
            query, _ = projection_of(found, found.query)
            key, groups = projection_of(found, found.key)
            value, _ = projection_of(found, found.value)
    kv_heads = max(groups) + 1
    each = found.heads // len(groups)  # > 1 where the operation itself was given fewer keys
    return Attention(
        address=found.op,
        module=found.module,
        form=found.form,
        heads=found.heads,
        kv_heads=kv_heads,
        size=found.query.shape[-1],
        value_size=found.value.shape[-1],
        output=found.output,
        query=query,
        key=key,
        value=value,
        group_of=tuple(groups[head // each] for head in range(found.heads)),
        scores=found.scores,
        probabilities=found.probabilities,
        merged=found.merged,
        calls=found.calls,
    )


def _blocks(count: int, size: int, first: int) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(range(first + head * size, first + (head + 1) * size)) for head in range(count)
    )
