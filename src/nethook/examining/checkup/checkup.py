"""The pre-flight check of `nethook.checkup`: every experiment on copies, and their result."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.errors import OptionError
from nethook.examining.checkup import checks
from nethook.examining.checkup.batch import Batch, as_batch
from nethook.examining.checkup.copies import Copies, set_apart
from nethook.examining.checkup.dead_units import dead_units
from nethook.examining.checkup.modes import compare
from nethook.examining.checkup.result import Checkup
from nethook.examining.checkup.trial import Recorder, first_steps, joined, trials
from nethook.init.proof.measure import verify
from nethook.stats.native import readable
from nethook.stats.summary import summarise


def check_up(
    model: nn.Module,
    batch: Any,
    loss_fn: Any,
    optimizer: torch.optim.Optimizer | None,
    *,
    steps: int,
    record: Recorder,
) -> Checkup:
    """What `nethook.checkup` returns; `record` writes the run files that the doctor's rules read.

    Raises:
        InputsError: a batch, a loss or a model that cannot be checked, and why.
        OptionError: too few steps.
    """
    if steps < 12:
        raise OptionError(f"`steps` must be at least 12; got {steps!r}.")
    given = as_batch(batch, loss_fn)
    with set_apart(model, given, loss_fn, optimizer) as copies:
        return _checked(copies, given, steps, record)


def _checked(copies: Copies, batch: Batch, steps: int, record: Recorder) -> Checkup:
    _try_out(copies, batch)
    first = first_steps(copies, batch, record)
    mine = copies.again()
    mine.model.train()
    report = verify(mine.model, batch.inputs, lambda output: batch.loss(mine.loss, output))
    made, tried = trials(copies, batch, steps, record)
    by_rules = joined(first.findings, tried)
    named = [one for finding in by_rules for one in (finding, *finding.consequences)]
    trained = sum(parameter.requires_grad for parameter in copies.model.parameters())
    told = [
        checks.signal(report),
        checks.gradient(report),
        checks.start(named),
        checks.initial_loss(first),
        checks.inputs(_scales(batch), named),
        checks.fit(named),
        checks.reachable(named, trained),
        checks.units(dead_units(copies.again().model, batch), batch.samples),
        checks.modes(compare(copies.again().model, batch)),
        checks.overfits(made, batch.samples, copies.optimizer is not None, named),
        *checks.experiments(first.examined),
    ]
    # Where a rule has found the same, it has the last word.
    every = joined((finding for _, findings in reversed(told) for finding in findings), by_rules)
    name = type(copies.model).__name__
    return Checkup(name, tuple(check for check, _ in told), tuple(every), report)


def _try_out(copies: Copies, batch: Batch) -> None:
    """One forward and one loss: an error of the call itself is raised as it is."""
    mine = copies.again()
    mine.model.train()
    try:
        output = batch.inputs.call(mine.model)
    except Exception as error:
        shapes = ", ".join(str(tuple(t.shape)) for _, t in tensors(batch.inputs.args)) or "none"
        error.add_note(f"nethook.checkup called the model with tensors of shapes {shapes}.")
        raise
    try:
        batch.loss(mine.loss, output)
    except Exception as error:
        error.add_note("nethook.checkup called loss_fn(output, targets).")
        raise


def _scales(batch: Batch) -> dict[str, tuple[float, float]]:
    """Mean and spread of each floating-point input."""
    given = (batch.inputs.args, dict(batch.inputs.kwargs))
    floats = [tensor for _, tensor in tensors(given) if tensor.is_floating_point()]
    scales: dict[str, tuple[float, float]] = {}
    for index, tensor in enumerate(floats):
        name = "input" if len(floats) == 1 else f"input {index}"
        if readable.is_readable(tensor) and tensor.numel():
            seen = summarise(tensor.detach(), histogram=False)
            scales[name] = seen.mean, seen.std
    return scales
