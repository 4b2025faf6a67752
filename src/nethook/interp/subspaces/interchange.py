"""Interchange in a subspace: h = h_base + (h_source - h_base) B Bᵀ, at one site of a model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import replace, tensors
from nethook.editing.scope import edit
from nethook.errors import OptionError
from nethook.restoring.copies import own_inputs
from nethook.tracing.scope import trace


def orthonormal(free: torch.Tensor) -> torch.Tensor:
    """A basis with orthonormal columns, (width, size), from any matrix of full rank."""
    q, r = torch.linalg.qr(free)
    # As close to what was given as may be.
    turned: torch.Tensor = q * torch.where(r.diagonal() < 0, -1.0, 1.0)
    return turned


def site_value(model: nn.Module, inputs: Inputs, at: str) -> torch.Tensor:
    """The value of a site, its first tensor; gradients are off."""
    with torch.no_grad(), trace(model, at, stop=True) as tape:
        own_inputs(inputs).call(model)
    value = tensors(tape[at].output)[0][1]
    if value.ndim not in (2, 3):
        raise OptionError(
            f"`at` must be a site of (rows, features) or (rows, tokens, features); got "
            f"{at!r} of the shape {tuple(value.shape)}."
        )
    return value


def interchanged(
    model: nn.Module,
    base: Inputs,
    source: torch.Tensor,
    at: str,
    basis: torch.Tensor,
    position: int | None,
) -> Any:
    """The model's output for the base with the source's part in the subspace."""

    def swap(value: Any) -> Any:
        path, first = tensors(value)[0]
        if first.shape != source.shape:
            raise OptionError(
                f"`source` must give values of the base's shape at {at!r}, {tuple(first.shape)}; "
                f"got {tuple(source.shape)}."
            )
        part = (source.to(first) - first) @ basis.to(first) @ basis.to(first).T
        if position is not None and first.ndim == 3:
            chosen = torch.zeros(first.shape[1], 1, dtype=first.dtype, device=first.device)
            chosen[position] = 1
            part = part * chosen
        return replace(value, path, first + part)

    with edit(model, outputs={at: swap}):
        return own_inputs(base).call(model)
