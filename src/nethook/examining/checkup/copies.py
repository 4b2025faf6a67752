"""Copies to experiment on; what they were copied from stays as it was."""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from nethook.addresses.wrappers import inside
from nethook.errors import InputsError
from nethook.examining.checkup.batch import Batch
from nethook.hooks.process.discovery import undiscovered
from nethook.restoring.unchanged import unchanged

_SEED = 0  # the same for every check, so that two of the same model agree


@dataclass(frozen=True, slots=True)
class Copies:
    """A model, what belongs to it, and how to make more of the same."""

    model: nn.Module
    loss: Any
    optimizer: torch.optim.Optimizer | None

    def again(self) -> Copies:
        """The same once more. Parameters of the optimizer are those of the copied model."""
        loss = self.loss if isinstance(self.loss, nn.Module) else None
        try:
            model, copied, optimizer = copy.deepcopy((self.model, loss, self.optimizer))
        except Exception as error:
            raise InputsError(
                "`model` must be one that copy.deepcopy can copy, for a copy is trained; got "
                f"{type(error).__name__}: {error}. Check the model before what cannot be copied is "
                "added to it."
            ) from error
        return Copies(model, self.loss if loss is None else copied, optimizer)


@contextmanager
def set_apart(
    model: nn.Module, batch: Batch, loss: Any, optimizer: torch.optim.Optimizer | None
) -> Iterator[Copies]:
    """What to copy from, for a block with gradients and with random numbers of its own.

    Gradients of the model are laid aside: a loss that reaches for the model itself (a penalty on
    its weights) would add to them.
    """
    bare = _bare(model)
    _refuse(bare)
    held = nn.ModuleList([bare, loss] if isinstance(loss, nn.Module) else [bare])
    try:
        with (
            undiscovered(),
            unchanged(held, (batch.given, batch.targets), seed=_SEED),
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            for parameter in held.parameters():
                parameter.grad = None
            yield Copies(bare, loss, optimizer)
    finally:
        gc.collect()  # whoever looks for models that are trained must not find copies of this one


def _bare(model: nn.Module) -> nn.Module:
    """The model inside of wrappers: a copy needs no compiler and no process group."""
    while (wrapped := inside(model)) is not None:
        model = wrapped[1]
    return model


def _refuse(model: nn.Module) -> None:
    """Raises where there is nothing to check."""
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        if isinstance(parameter, UninitializedTensorMixin):
            raise InputsError(
                f"{name!r} has no shape yet: run the model once, model(inputs), before checkup."
            )
        if parameter.is_meta:
            raise InputsError(
                f"{name!r} is on the meta device and has no values to check. Make them first: "
                'model.to_empty(device="cpu") and the initialisation that the model is to have.'
            )
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise InputsError(
            "`model` must have a parameter that requires a gradient; got none, and nothing to "
            "train. Call model.requires_grad_(True), or check the model that is trained."
        )
