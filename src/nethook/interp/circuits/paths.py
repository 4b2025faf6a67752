"""`paths`: what a sender does through each module that reads it directly."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.editing.scope import edit
from nethook.errors import NoSuchSiteError, OptionError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.attention.heads import Attention
from nethook.interp.circuits.stream import (
    EMBEDDING,
    Sender,
    Stream,
    before_call,
    changed_at,
    difference,
    find_stream,
    run_recorded,
)
from nethook.interp.estimates.gradients import numbers
from nethook.interp.estimates.points import Point, attach, head_points
from nethook.interp.results.sweep import Sweep
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged

Metric = Callable[[Any], torch.Tensor]
Part: TypeAlias = Literal["q", "k", "v"]
Receiver: TypeAlias = str | tuple[str, Part] | tuple[str, Part, int]


def paths(
    model: nn.Module,
    base: Any,
    source: Any,
    sender: Sender,
    *,
    metric: Metric,
    receivers: Sequence[Receiver] | None = None,
) -> Sweep:
    """Path patching: what a sender's change does through each receiver that reads it, exactly.

        interp.paths(model, base, source, sender=("transformer.h.9.attn", 9), metric=fn)
        interp.paths(..., receivers=["transformer.h.10.ln_1", ("transformer.h.10.attn", "k", 3)])

    In the base run, the input of one receiver gets what the sender wrote in the source run minus
    what it wrote in the base run; everything else is as in the base run, and what comes behind the
    receiver is computed anew. Nothing is linearised.

    Arguments:
        model: a stack of blocks that add to one residual stream (docs/study-attention.md).
        base: inputs of the run that is changed.
        source: inputs of the run that the sender's write is taken from.
        sender: a module that writes to the stream (an attention, an MLP), one of its heads as
            `(module, head)`, or "embedding".
        metric: `fn(output)` gives one number per row.
        receivers: modules that are given the stream; `(attention, "q")`, "k" or "v" for what an
            attention makes of the stream for one of these alone, `(attention, "q", head)` for a
            single head. None means all modules that are given the stream after the sender: the
            norms before attentions and MLPs, or these themselves, and the readout.

    Returns:
        A `Sweep` with a site per receiver.

    Cost: two forwards to find the stream, two to record, one per receiver, and one more for each
    attention whose q, k or v receives.
    """
    started = time.perf_counter()
    given, other = as_inputs(base), as_inputs(source)
    stream = find_stream(model, base)
    known = stream.check(sender)
    name = known if isinstance(known, str) else known[0]
    chosen = _chosen(stream, name, receivers)
    unknown = [r for r in chosen if isinstance(r, str) and r not in stream.readers]
    with unchanged(model, (given, other), evaluation=True), torch.no_grad(), layer_by_layer():
        if unknown:
            _check_given_the_stream(model, given, stream, name, unknown)
        was, output = run_recorded(model, given, stream)
        measured = numbers(metric, output)
        new, output = run_recorded(model, other, stream)
        source_metric = numbers(metric, output)
        _check_shapes(was.parts[name], new.parts[name])
        run = _Runs(model, given, stream, difference(model, stream, known, new, was), metric)
        values = [run.through(receiver) for receiver in chosen]
    shown = name if isinstance(known, str) else f"head {known[1]} of {name}"
    return Sweep(
        sites=tuple(map(_show, chosen)),
        cells=("",),
        over="",
        values=torch.stack(values)[:, None],
        base=measured,
        source=source_metric,
        runs=4 + bool(unknown) + run.count,
        change=f"the path from {shown}",
        seconds=time.perf_counter() - started,
    )


class _Runs:
    """Runs of the base in which one receiver gets what a sender would have added."""

    def __init__(
        self, model: nn.Module, given: Inputs, stream: Stream, delta: torch.Tensor, metric: Metric
    ) -> None:
        self._model = model
        self._given = given
        self._stream = stream
        self._delta = delta
        self._metric = metric
        self._made: dict[str, dict[Point, torch.Tensor]] = {}  # q, k, v by attention
        self.count = 0

    def through(self, receiver: Receiver) -> torch.Tensor:
        """The metric when this receiver alone is changed."""
        if isinstance(receiver, str):
            return self._run(edit(self._model, **self._changed(receiver)))
        name, part = receiver[:2]
        row = self._stream.attention_of(name)
        (point,) = head_points([row], part)
        new = self._parts(name, row)[point]
        slots = point.slots(receiver[2], new.shape[1]) if len(receiver) == 3 else None

        def put(_: Point, value: torch.Tensor) -> torch.Tensor:
            if slots is None:
                return new
            value = value.clone()
            value[:, slots] = new[:, slots]
            return value

        return self._run(attach(self._model, [point], put))

    def _parts(self, name: str, row: Attention) -> dict[Point, torch.Tensor]:
        """What an attention's q, k and v become when the modules that feed it are changed."""
        if name not in self._made:
            made = self._made[name] = {}

            def keep(point: Point, value: torch.Tensor) -> None:
                made[point] = value.detach().clone()

            points = [head_points([row], part)[0] for part in ("q", "k", "v")]
            changes: dict[str, Any] = {}
            for reader in self._stream.fed_by[name]:
                for kind, edits in self._changed(reader).items():
                    changes.setdefault(kind, {}).update(edits)
            with edit(self._model, **changes):
                self._run(attach(self._model, points, keep))
        return self._made[name]

    def _changed(self, reader: str) -> dict[str, Any]:
        def add(first: torch.Tensor) -> torch.Tensor:
            return first + self._delta.to(first.dtype).reshape(first.shape)

        kind, where, what = changed_at(self._stream, reader, add)
        return {kind: {where: what}}

    def _run(self, scope: Any) -> torch.Tensor:
        self.count += 1
        with scope:
            return numbers(self._metric, own_inputs(self._given).call(self._model))


def _chosen(stream: Stream, name: str, receivers: Sequence[Receiver] | None) -> list[Receiver]:
    """The receivers that are asked for, as they are known; all that the sender reaches."""
    if receivers is None:
        found: list[Receiver] = [
            reader
            for reader in stream.readers
            if name == EMBEDDING or name in stream.before[reader]
        ]
        if not found:
            raise NoSuchSiteError(f"nothing reads the residual stream after {name!r}.")
        return found
    known = [r if isinstance(r, str) else _checked(stream, r) for r in receivers]
    for receiver in known:
        first = receiver if isinstance(receiver, str) else stream.fed_by[receiver[0]][0]
        if first in stream.before and name not in (EMBEDDING, *stream.before[first]):
            raise OptionError(
                f"a path must lead forward; {name!r} writes after {_show(receiver)!r} has read."
            )
    return known


def _checked(stream: Stream, receiver: tuple[Any, ...]) -> Receiver:
    if len(receiver) not in (2, 3) or receiver[1] not in ("q", "k", "v"):
        raise OptionError(
            '`receivers` must be modules, or parts of attentions as (module, "q") or (module, '
            f'"q", head), with "q", "k" or "v"; got {receiver!r}.'
        )
    write = stream.check(receiver[0])
    assert isinstance(write, str)
    if write == EMBEDDING:
        raise OptionError(
            f"`receivers` must be attentions where they have parts; got {receiver!r}."
        )
    if len(receiver) == 3:
        stream.attention_of(write).check_head(receiver[2], receiver[1])
    return (write, *receiver[1:])


def _check_given_the_stream(
    model: nn.Module, given: Inputs, stream: Stream, sender: str, names: Sequence[str]
) -> None:
    """Raises where a module is given something else than the stream, such as what a norm made."""
    seen: dict[str, torch.Tensor] = {}

    def note(name: str) -> Any:
        def keep(first: torch.Tensor) -> None:
            seen[name] = first.detach().clone()

        return before_call(keep)

    with edit(model, answers={name: note(name) for name in (*stream.readers, *names)}):
        own_inputs(given).call(model)
    for name in names:
        same = [reader for reader in stream.readers if torch.equal(seen[reader], seen[name])]
        if not same:
            raise OptionError(
                f"{name!r} is not given the residual stream: something is computed from it before. "
                "Name the module that is given it, or a part of the attention, as in "
                'receivers=[("h.1.attn", "k")].'
            )
        if not any(sender == EMBEDDING or sender in stream.before[reader] for reader in same):
            raise OptionError(
                f"a path must lead forward; {sender!r} writes after {name!r} has read."
            )


def _show(receiver: Receiver) -> str:
    if isinstance(receiver, str):
        return receiver
    head = f", head {receiver[2]}" if len(receiver) == 3 else ""
    return f"{receiver[0]} ({receiver[1]}{head})"


def _check_shapes(one: torch.Tensor, two: torch.Tensor) -> None:
    if one.shape != two.shape:
        raise OptionError(
            "`source` must have the shapes of `base`, in which the sender wrote "
            f"{tuple(one.shape)}; got {tuple(two.shape)}. Choose texts of as many tokens."
        )
