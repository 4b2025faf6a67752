"""Training steps to try experiments on: models, inputs and losses as scripts have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.examining.batch_facts import LoaderFacts
from nethook.examining.rehearsal import Rehearsal
from nethook.examining.rehearse import rehearse


@dataclass(frozen=True)
class Step:
    """A training step: a model, its inputs, and what the script does with its output.

    `loader` is the script's data loader, or its batch size, where it has one; `repeats` says that
    every step has the same batch; `sizes` are those of the batches before.
    """

    model: nn.Module
    inputs: Inputs
    then: Callable[[Any], torch.Tensor]
    loader: int | LoaderFacts | None = None
    repeats: bool | None = None
    sizes: tuple[int, ...] = ()

    def rehearsal(self, *optimizers: torch.optim.Optimizer) -> Rehearsal:
        """The step on a copy."""
        made = rehearse(self.model, self.inputs, self.then, optimizers)
        loader = self.loader
        if isinstance(loader, int):
            loader = LoaderFacts(loader, collated=True)
        made.history = dataclasses.replace(
            made.history,
            loader=loader,
            repeats=self.repeats,
            sizes=self.sizes or made.history.sizes,
        )
        return made


def step(model: nn.Module, *args: Any, then: Callable[[Any], torch.Tensor], **facts: Any) -> Step:
    """A step of a model that takes its inputs by position."""
    return Step(model, Inputs(args), then, **facts)


class Calls(nn.Module):
    """A module whose forward is a function of itself and its inputs."""

    def __init__(self, forward: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the function says."""
        return self.function(self, *args, **kwargs)
