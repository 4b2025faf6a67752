"""`paths`: what a sender does through each module that reads it directly."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.editing.scope import edit
from nethook.errors import NoSuchSiteError, OptionError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.circuits.stream import (
    EMBEDDING,
    Sender,
    before_call,
    difference,
    find_stream,
    run_recorded,
)
from nethook.interp.estimates.gradients import numbers
from nethook.interp.results.sweep import Sweep
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged

Metric = Callable[[Any], torch.Tensor]


def paths(
    model: nn.Module,
    base: Any,
    source: Any,
    sender: Sender,
    *,
    metric: Metric,
    receivers: Sequence[str] | None = None,
) -> Sweep:
    """Path patching: what a sender's change does through each receiver that reads it, exactly.

        interp.paths(model, base, source, sender=("transformer.h.9.attn", 9), metric=fn)

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
        receivers: modules that are given the stream. None means all that run after the sender: the
            norms before attentions and MLPs, or these themselves, and the readout.

    Returns:
        A `Sweep` with a site per receiver.

    Cost: two forwards to find the stream, two to record, and one per receiver.
    """
    started = time.perf_counter()
    given, other = as_inputs(base), as_inputs(source)
    stream = find_stream(model, base)
    known = stream.check(sender)
    name = known if isinstance(known, str) else known[0]
    chosen = list(receivers) if receivers is not None else [
        reader
        for reader in stream.readers
        if name == EMBEDDING or name in stream.before[reader]
    ]  # fmt: skip
    if not chosen:
        raise NoSuchSiteError(f"nothing reads the residual stream after {name!r}.")
    with unchanged(model, (given, other), evaluation=True), torch.no_grad(), layer_by_layer():
        was, output = run_recorded(model, given, stream)
        measured = numbers(metric, output)
        new, output = run_recorded(model, other, stream)
        source_metric = numbers(metric, output)
        _check_shapes(was.parts[name], new.parts[name])
        delta = difference(model, stream, known, new, was)
        values = [_through(model, given, reader, delta, metric) for reader in chosen]
    shown = name if isinstance(known, str) else f"head {known[1]} of {name}"
    return Sweep(
        sites=tuple(chosen),
        cells=("",),
        over="",
        values=torch.stack(values)[:, None],
        base=measured,
        source=source_metric,
        runs=4 + len(chosen),
        change=f"the path from {shown}",
        seconds=time.perf_counter() - started,
    )


def _through(
    model: nn.Module, given: Inputs, reader: str, delta: torch.Tensor, metric: Metric
) -> torch.Tensor:
    def add(first: torch.Tensor) -> torch.Tensor:
        return first + delta.to(first.dtype).reshape(first.shape)

    with edit(model, answers={reader: before_call(add)}):
        return numbers(metric, own_inputs(given).call(model))


def _check_shapes(one: torch.Tensor, two: torch.Tensor) -> None:
    if one.shape != two.shape:
        raise OptionError(
            "`source` must have the shapes of `base`, in which the sender wrote "
            f"{tuple(one.shape)}; got {tuple(two.shape)}. Choose texts of as many tokens."
        )
