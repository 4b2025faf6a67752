"""`circuit`: some edges of a residual stream, and how much of the model's behaviour they carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.editing.scope import edit
from nethook.errors import NoSuchSiteError, OptionError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.circuits.stream import (
    EMBEDDING,
    Sender,
    Stream,
    Written,
    changed_at,
    find_stream,
    heads_difference,
    recorder,
    run_recorded,
)
from nethook.interp.estimates.gradients import numbers
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table

Edge: TypeAlias = tuple[Sender, str]
Metric = Callable[[Any], torch.Tensor]


@dataclass(frozen=True, repr=False)
class Faithfulness:
    """The metric with the circuit alone, with the whole model and with no edge, per row.

    `values` is (circuit − none) / (whole − none): 1 where the circuit does all that the model does.
    """

    circuit: torch.Tensor
    whole: torch.Tensor
    none: torch.Tensor
    kept: int
    edges: int

    @property
    def values(self) -> torch.Tensor:
        """The share of the model's behaviour that the circuit carries, per row."""
        apart = self.whole - self.none
        same = (apart == 0).nonzero().flatten().tolist()
        if same:
            raise OptionError(
                f"faithfulness is not defined in rows {same[:5]}: the metric is the same with all "
                "edges and with none. Choose a source that gives another answer."
            )
        return (self.circuit - self.none) / apart

    @property
    def mean(self) -> float:
        """The mean over rows."""
        return float(self.values.double().mean())

    def __repr__(self) -> str:
        rows = [
            (label, f"{float(value.double().mean()):.4f}")
            for label, value in (
                ("whole model", self.whole), ("circuit", self.circuit), ("no edge", self.none)
            )
        ]  # fmt: skip
        title = f"faithfulness {self.mean:.3f} with {self.kept} of {self.edges} edges"
        return Table(title, ("run", "metric"), rows, right=frozenset({"metric"})).text()


class Circuit:
    """Some edges of a model: pairs of a sender and a reader of the residual stream."""

    def __init__(self, model: nn.Module, edges: Iterable[Edge]) -> None:
        self._model = model
        self.edges = tuple(edges)

    def __repr__(self) -> str:
        shown = ", ".join(f"{_show(sender)} → {reader}" for sender, reader in self.edges[:6])
        more = " …" if len(self.edges) > 6 else ""
        return f"<circuit of {len(self.edges)} edges: {shown}{more}>"

    def faithfulness(self, base: Any, source: Any, *, metric: Metric) -> Faithfulness:
        """How much of the base run's behaviour remains when all other edges come from the source.

        Every reader gets, for each edge that is not in the circuit, what the sender wrote in the
        source run instead of what it writes now. Senders are the embedding, attentions and MLPs;
        where the circuit names a head, all heads of that attention are senders of their own.

        Cost: two forwards to find the stream, two to record, and two more.
        """
        given, other = as_inputs(base), as_inputs(source)
        model = self._model
        stream = find_stream(model, base)
        kept = self._known(stream)
        split = {sender[0] for sender, _ in kept if not isinstance(sender, str)}
        with unchanged(model, (given, other), evaluation=True), torch.no_grad(), layer_by_layer():
            _, output = run_recorded(model, given, stream)
            whole = numbers(metric, output)
            there, _ = run_recorded(model, other, stream)
            every = _every_edge(stream, split)
            circuit = _run(model, given, stream, there, every - kept, metric)
            none = _run(model, given, stream, there, every, metric)
        return Faithfulness(circuit, whole, none, len(kept & every), len(every))

    def _known(self, stream: Stream) -> set[Edge]:
        known: set[Edge] = set()
        for sender, reader in self.edges:
            checked = stream.check(sender)
            if reader not in stream.readers:
                names = ", ".join(map(repr, stream.readers[:6]))
                raise NoSuchSiteError(
                    f"{reader!r} does not read the residual stream; what does: {names} …"
                )
            name = checked if isinstance(checked, str) else checked[0]
            if name != EMBEDDING and name not in stream.before[reader]:
                raise OptionError(
                    f"an edge must lead forward; {name!r} writes after {reader!r} has read."
                )
            known.add((checked, reader))
        split = {sender[0] for sender, _ in known if not isinstance(sender, str)}
        mixed = [sender for sender, _ in known if sender in split]
        if mixed:
            raise OptionError(
                f"{mixed[0]!r} must be named as a whole or by heads in one circuit; got both."
            )
        return known


def circuit(model: nn.Module, edges: Iterable[Edge]) -> Circuit:
    """Some edges of a model's residual stream.

        found = interp.circuit(model, [(("h.0.attn", 1), "h.1.ln_1"), ("h.1.attn", "ln_f")])
        found.faithfulness(base, source, metric=fn)

    Arguments:
        model: a stack of blocks that add to one residual stream.
        edges: pairs of a sender (a module that writes, `(module, head)`, or "embedding") and a
            reader (a module that is given the stream; `interp.roles` lists them).
    """
    return Circuit(model, edges)


def _every_edge(stream: Stream, split: set[str]) -> set[Edge]:
    every: set[Edge] = set()
    for reader in stream.readers:
        for name in (EMBEDDING, *stream.before[reader]):
            if name in split:
                every |= {((name, head), reader) for head in range(stream.attention_of(name).heads)}
            else:
                every.add((name, reader))
    return every


def _run(
    model: nn.Module, given: Inputs, stream: Stream, source: Written, cut: set[Edge], metric: Metric
) -> torch.Tensor:
    """The metric of the base run in which some edges carry what the source run wrote."""
    now = Written({}, {})
    outputs, answers = recorder(stream, now)
    by_reader: dict[str, list[Sender]] = {}
    for sender, reader in cut:
        by_reader.setdefault(reader, []).append(sender)

    def swap(senders: list[Sender]) -> Any:
        order = sorted(senders, key=lambda s: (stream.senders.index(_name(s)), str(s)))

        def change(first: torch.Tensor) -> torch.Tensor:
            total = first
            by_write: dict[str, list[int]] = {}
            for sender in order:
                if isinstance(sender, str):
                    delta = source.parts[sender] - now.parts[sender]
                    total = total + delta.reshape(first.shape)
                else:
                    by_write.setdefault(sender[0], []).append(sender[1])
            for write, chosen in by_write.items():
                delta = heads_difference(model, stream, write, chosen, source, now)
                total = total + delta.reshape(first.shape)
            return total

        return change

    changes: dict[str, Any] = {
        "outputs": {name: [note] for name, note in outputs.items()},
        "answers": {name: [note] for name, note in answers.items()},
    }
    for reader, senders in by_reader.items():
        kind, where, what = changed_at(stream, reader, swap(senders))
        changes[kind].setdefault(where, []).append(what)
    with edit(model, **changes):
        return numbers(metric, own_inputs(given).call(model))


def _name(sender: Sender) -> str:
    return sender if isinstance(sender, str) else sender[0]


def _show(sender: Sender) -> str:
    return sender if isinstance(sender, str) else f"{sender[0]} head {sender[1]}"
