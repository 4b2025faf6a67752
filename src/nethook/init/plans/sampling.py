"""Filling a weight: one function per distribution, seeded, in any type and on any device."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from nethook.errors import InitError
from nethook.init.dataflow.fans import Layout

Distribution = Literal[
    "normal", "uniform", "truncated_normal", "orthogonal", "delta_orthogonal", "constant"
]
DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)
# The standard deviation of a normal variable that is drawn again beyond ±2.
_TRUNCATED = 0.8796256610342398


def why_not_fillable(tensor: torch.Tensor) -> str | None:
    """Why a tensor cannot be given values in place; None where it can."""
    if tensor.is_meta:
        return (
            "it is on the meta device and has no memory: call model.to_empty(device=...) first, "
            "then apply the plan"
        )
    if is_distributed(tensor):
        return (
            "it is a DTensor, and every rank would fill its shard with the same numbers: "
            "initialise the model before it is sharded, or load a seeded state_dict"
        )
    if isinstance(tensor, UninitializedTensorMixin):
        return "its shape is not known before the first forward: run the model once"
    if not tensor.is_floating_point():
        return f"it is of type {str(tensor.dtype).removeprefix('torch.')}"
    return None


def is_distributed(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a DTensor. Its module is not imported for that: then nothing is one."""
    import sys

    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def draw(
    shape: tuple[int, ...],
    distribution: Distribution,
    std: float,
    layout: Layout,
    generator: torch.Generator | None = None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """New values of that standard deviation.

    They are drawn on the generator's device, at least in float32, so that the same seed gives the
    same weights whatever the type and the device of the parameter.
    """
    drawn_on = torch.device(device) if generator is None else generator.device
    wide = dtype if dtype in (torch.float32, torch.float64) else torch.float32
    made = torch.empty(shape, device=drawn_on, dtype=wide)
    if distribution == "normal":
        made.normal_(0.0, std, generator=generator)
    elif distribution == "uniform":
        bound = math.sqrt(3.0) * std
        made.uniform_(-bound, bound, generator=generator)
    elif distribution == "truncated_normal":
        inner = std / _TRUNCATED
        torch.nn.init.trunc_normal_(
            made, 0.0, inner, -2 * inner, 2 * inner, generator=generator
        ) if std else made.zero_()
    elif distribution == "constant":
        made.fill_(std)
    elif distribution == "orthogonal":
        _orthogonal(made, std, layout, generator)
    else:
        _delta_orthogonal(made, std, layout, generator)
    return made.to(device=device, dtype=dtype)


def _orthogonal(
    made: torch.Tensor, std: float, layout: Layout, generator: torch.Generator | None
) -> None:
    matrices = layout.matrices(made)
    filled = torch.stack([_semi_orthogonal(matrix, generator) for matrix in matrices])
    made.copy_(layout.weight(filled, tuple(made.shape)) * std)


def _semi_orthogonal(like: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """Orthonormal rows or columns, whichever are fewer, scaled so that entries have variance 1."""
    rows, columns = like.shape
    tall = max(rows, columns)
    normal = torch.empty(tall, min(rows, columns), device=like.device, dtype=like.dtype)
    made: tuple[torch.Tensor, torch.Tensor] = torch.linalg.qr(normal.normal_(generator=generator))
    q, r = made
    q = q * torch.where(r.diagonal() < 0, -1.0, 1.0)  # else the signs are not evenly spread
    return (q if rows >= columns else q.T) * math.sqrt(tall)


def _delta_orthogonal(
    made: torch.Tensor, std: float, layout: Layout, generator: torch.Generator | None
) -> None:
    if made.dim() < 3 or layout.form not in ("conv", "conv_transpose"):
        _orthogonal(made, std, layout, generator)
        return
    centre = [size // 2 for size in made.shape[2:]]
    taps = math.prod(made.shape[2:])
    tap = torch.empty(made.shape[:2], device=made.device, dtype=made.dtype)
    # One tap instead of all: the same energy needs `taps` times the variance.
    _orthogonal(tap, std * math.sqrt(taps), layout, generator)
    made.zero_()
    centre_tap = made
    for position in centre:
        # A view: the next dimension of the kernel is third again.
        centre_tap = centre_tap.select(2, position)
    centre_tap.copy_(tap)


@torch.no_grad()
def fill_(tensor: torch.Tensor, values: torch.Tensor, name: str) -> None:
    """Writes values into a parameter in place, as an optimizer would."""
    reason = why_not_fillable(tensor)
    if reason is not None:
        raise InitError(f"{name!r} cannot be initialised: {reason}.")
    tensor.copy_(values)
