"""A rehearsal of a step that is not under way: for checks before training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.examining.batch_facts import facts_of
from nethook.examining.copying import bare, copy_of
from nethook.examining.keeping import KeptCall
from nethook.examining.optimizing import settings_of
from nethook.examining.rehearsal import Rehearsal
from nethook.hooks.process.discovery import undiscovered
from nethook.restoring.unchanged import unchanged


def rehearse(
    model: nn.Module,
    inputs: Inputs,
    then: Callable[[Any], torch.Tensor],
    optimizers: Iterable[torch.optim.Optimizer] = (),
) -> Rehearsal:
    """A rehearsal of `then(model(*inputs))`, which runs once, on a copy; the model stays as it is.

    Arguments:
        model: in the mode that it is to be in.
        inputs: of the model.
        then: what the script does with the output: gives the loss.
        optimizers: of the script.

    Raises:
        NotReplayableError: the model cannot be copied, or not be run aside.
    """
    with undiscovered(), unchanged(model, inputs), torch.enable_grad():
        mine = copy_of(bare(model))
        kept = KeptCall(mine, inputs.args, inputs.kwargs)
        try:
            output = inputs.call(mine)
            kept.returned(output)
            loss = then(output)
            material = kept.backward([loss], facts_of(inputs))
            material.optimizers = settings_of(optimizers, bare(model))
        finally:
            kept.drop()
        rehearsal = Rehearsal(material)
        rehearsal.check()
    return rehearsal
