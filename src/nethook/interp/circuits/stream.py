"""Senders and readers of a residual stream: what is written to it, and which modules read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.lookup import get_module
from nethook.addresses.nested import replace, tensors
from nethook.editing.scope import edit
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.attention.heads import Heads, heads
from nethook.interp.attention.multihead import with_heads
from nethook.interp.attention.roles import Roles, roles
from nethook.interp.lenses.lens import last_stack
from nethook.restoring.copies import own_inputs

EMBEDDING = "embedding"
_NOT_A_SUM: dict[str | None, str] = {
    "post-norm": ": a norm rescales what was written before the next module reads it, by a factor "
    "that depends on all of it, so no sender has a part of its own in what a receiver is given"
}
Sender: TypeAlias = str | tuple[str, int]  # a module, or one head of an attention


@dataclass(frozen=True)
class Stream:
    """A residual stream: blocks, senders in order, and readers, each with the senders before it.

    `readout` is the reader behind the last block: all that reads what that block returned.
    """

    blocks: tuple[str, ...]
    writes: tuple[str, ...]  # modules whose output is added
    readers: tuple[str, ...]
    before: dict[str, tuple[str, ...]]  # reader -> the writes that it can see
    heads: Heads | None
    fed_by: dict[str, tuple[str, ...]]  # write -> the readers that it computes from
    readout: str | None

    @property
    def senders(self) -> tuple[str, ...]:
        """The embedding and all writes."""
        return (EMBEDDING, *self.writes)

    def attention_of(self, write: str) -> Any:
        """The attention whose heads a write mixes."""
        if self.heads is None:
            raise NoSuchSiteError(f"{write!r} has no heads: the model has no attention.")
        for row in self.heads:
            if row.output == write or row.output.startswith(f"{write}."):
                return row
        return self.heads[write]

    def check(self, sender: Sender) -> Sender:
        """A sender as it is known; an error where there is none of that name."""
        name, head = (sender, None) if isinstance(sender, str) else sender
        if name not in self.senders:
            inside = [write for write in self.writes if name.startswith(f"{write}.")]
            around = [write for write in self.writes if write.startswith(f"{name}.")]
            found = inside or around
            if len(found) != 1:
                known = ", ".join(map(repr, self.senders[:6]))
                raise NoSuchSiteError(
                    f"{name!r} writes nothing to the residual stream; what does: {known} …"
                )
            name = found[0]
        if head is None:
            return name
        self.attention_of(name).check_head(head)
        return (name, head)


def find_stream(model: nn.Module, inputs: Any) -> Stream:
    """The stream of a model; an error where its blocks do not add to one."""
    found: Roles = roles(model, inputs)
    blocks = last_stack(found.blocks)
    rows = [found[name] for name in blocks]
    if any(row.layout not in ("sequential", "parallel") for row in rows):
        layout = next((row.layout for row in rows if row.layout in _NOT_A_SUM), rows[0].layout)
        raise OptionError(
            "paths must lead through a residual stream to which blocks only add; the layout of "
            f"these blocks is {layout or 'unknown'}{_NOT_A_SUM.get(layout, '')}. Use interp.sweep, "
            "which needs none."
        )
    writes: list[str] = []
    readers: list[str] = []
    before: dict[str, tuple[str, ...]] = {}
    fed_by: dict[str, tuple[str, ...]] = {}
    for row in rows:
        own = [write.address for write in row.writes]
        for number, reader in enumerate(row.readers):
            seen = [] if row.layout == "parallel" else own[: min(number, len(own) - 1)]
            before[reader] = (*writes, *seen)
            readers.append(reader)
        for number, write in enumerate(own):
            at = min(number, len(row.readers) - 1)
            mine = row.readers if row.layout == "parallel" else row.readers[at : at + 1]
            fed_by[write] = tuple(mine)
        writes += own
    last = found.readout[0] if found.readout else None
    if last is not None:
        readers.append(last)
        before[last] = tuple(writes)
    try:
        known = heads(model, inputs)
    except NoSuchSiteError:
        known = None
    return Stream(blocks, tuple(writes), tuple(readers), before, known, fed_by, last)


@dataclass
class Written:
    """What was written to the stream in one run: by write, and heads before they are mixed."""

    parts: dict[str, torch.Tensor]
    heads: dict[str, torch.Tensor]  # by write: the flat input of the projection


def recorder(stream: Stream, kept: Written) -> tuple[dict[str, Any], dict[str, Any]]:
    """Edits that change nothing and note what is written: outputs=, and answers=."""

    def written(name: str) -> Any:
        def note(value: Any) -> None:
            kept.parts[name] = tensors(value)[0][1].detach().clone()

        return note

    def begun(first: torch.Tensor) -> None:
        kept.parts[EMBEDDING] = first.detach().clone()

    def mixed(name: str) -> Any:
        def note(first: torch.Tensor) -> None:
            kept.heads[name] = first.detach().clone()

        return note

    def inside(name: str) -> Any:
        def note(heads: torch.Tensor) -> None:
            kept.heads[name] = heads.transpose(1, 2).flatten(-2).detach().clone()

        return note

    outputs = {name: written(name) for name in stream.writes}
    answers = {stream.blocks[0]: before_call(begun)}
    for name in stream.writes:
        row = _mixing(stream, name)
        if row is not None and row.form == "nn.MultiheadAttention":
            answers[row.address] = with_heads(inside(name))
        elif row is not None:
            answers[row.output] = before_call(mixed(name))
    return outputs, answers


def before_call(change: Callable[[torch.Tensor], torch.Tensor | None]) -> Callable[..., Any]:
    """What answers a module's call: its own forward, with its first tensor changed before."""

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any], compute: Any) -> Any:
        whole = (args, dict(kwargs))
        path, first = tensors(whole)[0]
        new = change(first)
        if new is not None:
            args, kwargs = replace(whole, path, new)
        return compute(*args, **kwargs)

    return answer


def changed_at(
    stream: Stream, reader: str, change: Callable[[torch.Tensor], torch.Tensor | None]
) -> tuple[str, str, Any]:
    """An edit of what one reader is given: "outputs" or "answers", where, and what.

    What lies behind the last block reads what that block returns, whatever it does with it first.
    """
    if reader != stream.readout:
        return "answers", reader, before_call(change)

    def after(value: Any) -> Any:
        path, first = tensors(value)[0]
        new = change(first)
        return None if new is None else replace(value, path, new)

    return "outputs", stream.blocks[-1], after


def _mixing(stream: Stream, write: str) -> Any:
    for row in stream.heads or ():
        own = row.output == write or row.output.startswith(f"{write}.")
        if own:
            return row
    return None


def run_recorded(model: nn.Module, inputs: Inputs, stream: Stream) -> tuple[Written, Any]:
    """One run: what was written, and the output."""
    kept = Written({}, {})
    outputs, answers = recorder(stream, kept)
    with edit(model, outputs=outputs, answers=answers):
        output = own_inputs(inputs).call(model)
    return kept, output


def difference(
    model: nn.Module, stream: Stream, sender: Sender, new: Written, old: Written
) -> torch.Tensor:
    """What a sender writes in one run minus what it writes in another."""
    if isinstance(sender, str):
        return new.parts[sender] - old.parts[sender]
    return heads_difference(model, stream, sender[0], [sender[1]], new, old)


def heads_difference(
    model: nn.Module, stream: Stream, write: str, chosen: Sequence[int], new: Written, old: Written
) -> torch.Tensor:
    """The same for some heads of an attention, through the projection that mixes them."""
    row = stream.attention_of(write)
    flat, other = old.heads[write], new.heads[write]
    moved = flat.clone().unflatten(-1, (row.heads, -1))
    moved[..., list(chosen), :] = other.unflatten(-1, (row.heads, -1))[..., list(chosen), :]
    is_multihead = row.form == "nn.MultiheadAttention"  # it never calls its projection
    projection = get_module(model, f"{row.module}.out_proj" if is_multihead else row.output)
    delta: torch.Tensor = projection(moved.flatten(-2)) - projection(flat)
    if is_multihead and not get_module(model, row.module).batch_first:
        delta = delta.transpose(0, 1)
    shape = old.parts[write].shape
    return delta.reshape(shape)
