"""The batch of a pre-flight check: inputs, targets, and the loss that belongs to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.errors import InputsError
from nethook.restoring.copies import own_inputs


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Inputs of the model, and targets of the loss."""

    given: Inputs
    targets: Any

    @property
    def inputs(self) -> Inputs:
        """Copies for one call: a forward that writes to its inputs finds the same at each."""
        return own_inputs(self.given)

    @property
    def samples(self) -> int:
        """The length of the first dimension; 0 where the tensors have none in common."""
        lengths = {t.size(0) if t.dim() else 0 for t in self._tensors()}
        return lengths.pop() if len(lengths) == 1 else 0

    def first(self, samples: int) -> Batch:
        """The first samples; all of it where the first dimension does not count them."""
        if self.samples <= samples:
            return self
        cut = map_tensors(lambda t: t[:samples], self._parts())
        return Batch(Inputs(cut[0], cut[1]), cut[2])

    def loss(self, loss_fn: Any, output: Any) -> torch.Tensor:
        """The loss of what the model returned.

        Raises:
            InputsError: it is not one number with a gradient.
        """
        if loss_fn is not None:
            (targets,) = own_inputs(Inputs((self.targets,))).args
            value = loss_fn(output, targets)
        elif isinstance(output, Mapping):
            value = output.get("loss")
        else:
            value = getattr(output, "loss", None)
        if loss_fn is None and not isinstance(value, torch.Tensor):
            raise InputsError(
                f"Without `loss_fn` the model's output must have a `.loss`; got {_kind(output)}. "
                "Type nethook.checkup(model, (inputs, targets), loss_fn)."
            )
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            came = (
                f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else _kind(value)
            )
            raise InputsError(
                f"`loss_fn` must give a tensor with one number; got {came}. Losses of single "
                "samples need a mean: loss.mean()."
            )
        if not value.requires_grad:
            raise InputsError(
                "`loss_fn` must give a loss with a gradient; got one that was computed from "
                "nothing that requires a gradient. Look for .detach(), .item() or torch.no_grad() "
                "in loss_fn and in the model."
            )
        return value

    def _tensors(self) -> list[torch.Tensor]:
        return [tensor for _, tensor in tensors(self._parts())]

    def _parts(self) -> Any:
        return self.given.args, dict(self.given.kwargs), self.targets


def as_batch(batch: Any, loss_fn: Any) -> Batch:
    """Any accepted form of a batch.

    Raises:
        InputsError: it has no targets, or inputs that mean nothing.
    """
    if loss_fn is None:
        return Batch(as_inputs(batch), None)
    if not callable(loss_fn):
        raise InputsError(
            f"`loss_fn` must be a function of output and targets; got {_kind(loss_fn)}. Type "
            "nn.CrossEntropyLoss(), say."
        )
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        size = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
        raise InputsError(
            f"`batch` must be (inputs, targets); got {_kind(batch)}{size}. Several inputs go into "
            "one tuple, nethook.checkup(model, ((x, mask), y), loss_fn); a model that computes its "
            "own loss needs no loss_fn."
        )
    return Batch(as_inputs(batch[0]), batch[1])


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
