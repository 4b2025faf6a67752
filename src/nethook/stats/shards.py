"""What this process holds of a tensor that several ranks share.

A `DTensor` is spread over ranks, and an operation on it may make ranks talk to each other. So
nothing is asked of one here but the part that lies in this process, and which part that is: the
parts are put together when a run is read.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import torch

from nethook.torch_private import local_of, type_on_its_way

_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


class Part(NamedTuple):
    """Which part of a tensor a rank holds: part `number` of `parts` that differ."""

    number: int
    parts: int


WHOLE = Part(0, 1)


def local_part(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor as it lies in this process; None where its elements are only known by a sum."""
    if type(tensor) in _PLAIN:
        return tensor
    shared = shared_type()
    if shared is not None and isinstance(tensor, shared):
        if any(placement.is_partial() for placement in tensor.placements):
            return None
        tensor = local_of(tensor).detach()
    awaited = type_on_its_way()
    if awaited is not None and isinstance(tensor, awaited):
        # On its way from a collective of the model's own, which the next layer would await.
        tensor = tensor.trigger_wait()
    return tensor


def part_of(tensor: torch.Tensor) -> Part:
    """Which part of a tensor this rank holds; all of it, where it is not spread."""
    if not is_shared(tensor):
        return WHOLE
    spread: Any = tensor
    coordinate = spread.device_mesh.get_coordinate()
    index, parts = 0, 1
    for dim, placement in enumerate(spread.placements):
        if not (placement.is_replicate() or placement.is_partial()):
            size = int(spread.device_mesh.size(dim))
            index = index * size + (0 if coordinate is None else coordinate[dim])
            parts *= size
    return Part(index, parts)


def is_shared(tensor: object) -> bool:
    """Whether a tensor is spread over ranks."""
    shared = shared_type()
    return shared is not None and isinstance(tensor, shared)


def placements_of(tensor: torch.Tensor) -> list[str]:
    """How a tensor is spread, in words; nothing where it is not."""
    return [str(placement) for placement in tensor.placements] if is_shared(tensor) else []  # type: ignore[attr-defined]


def shared_type() -> Any:
    """The type of tensors that are spread over ranks; None where nobody has loaded it."""
    # Whoever has a tensor of this type has loaded the module: it is not loaded for its sake.
    return getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
