"""What is kept of a value that passes by, safe from later writes.

The classic tools kept references, so that an in-place operation after the layer (`ReLU(inplace=
True)`, `h += x`) changed what they had retained. Here each tensor has a lazy copy beside it, which
costs memory only when somebody writes. Objects that hold tensors (caches) are copied with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from nethook.addresses.nested import map_tensors
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.hooks.modes import modes_are_active, unnoticed
from nethook.torch_private import version_of
from nethook.tracing.objects import Held, copier

_Tensor = torch.Tensor


class Snapshot:
    """A tensor, and a copy for the case that it is written to."""

    __slots__ = ("_copy", "_tensor", "_version")

    def __init__(self, tensor: torch.Tensor, copy: Callable[[_Tensor], _Tensor]) -> None:
        self._tensor = tensor
        self._copy: torch.Tensor = quietly(copy, tensor)
        self._version: int | None = quietly(_version, tensor)

    def read(self) -> torch.Tensor:
        """The very tensor, or the copy if somebody has written to it since."""
        if self._version is None or self._version != quietly(_version, self._tensor):
            return self._copy
        return self._tensor


def quietly(make: Callable[[_Tensor], Any], tensor: torch.Tensor) -> Any:
    """`make(tensor)`, unnoticed by modes and tensor subclasses of the user's."""
    if type(tensor) is _Tensor and not modes_are_active():
        return make(tensor)  # the hot path
    return unnoticed(make, tensor)


def retain(value: Any, *, clone: bool | None = False, detach: bool | None = False) -> Any:
    """A nested value as it is now; `read` gives it back."""
    kept = _keeper(clone=clone, detach=detach)
    return map_tensors(kept, value, copier(kept), fresh=True, attributes="map")


def retain_objects(value: Any, *, clone: bool | None = False) -> Any:
    """A nested value with its very tensors; the objects in it are as they are now."""
    return map_tensors(_same, value, copier(_keeper(clone=clone, detach=False)))


def _keeper(*, clone: bool | None, detach: bool | None) -> Callable[[_Tensor], Any]:
    copy: Callable[[_Tensor], _Tensor] = _Tensor.clone if clone else cheap_copy

    def kept(tensor: torch.Tensor) -> Any:
        # Inside a graph the very tensor is wanted: `torch.autograd.grad` can be taken of no other.
        in_graph = not (clone or detach) and quietly(_requires_grad, tensor)
        return Snapshot(tensor, copy) if in_graph else quietly(own, tensor)

    def own(tensor: torch.Tensor) -> torch.Tensor:
        return copy(tensor.detach() if detach else tensor)

    return kept


def note(value: Any, *, clone: bool | None = False) -> Any:
    """A nested value as it is now; `read` gives the very tensors back that nobody wrote to."""
    copy: Callable[[_Tensor], _Tensor] = _Tensor.clone if clone else cheap_copy

    def noted(tensor: torch.Tensor) -> Snapshot:
        return Snapshot(tensor, copy)

    return map_tensors(noted, value, copier(noted), fresh=True, attributes="map")


def read(value: Any) -> Any:
    """What `retain` or `note` was given, as it was then."""
    return map_tensors(_same, value, _read, attributes="map")


def _version(tensor: torch.Tensor) -> int | None:
    """How often a tensor was written; None for an inference tensor, of which nobody can tell."""
    return None if tensor.is_inference() else version_of(tensor)


def _requires_grad(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _read(each: Any) -> Any:
    if isinstance(each, Held):
        return each.read({Snapshot: Snapshot.read})
    return each.read() if isinstance(each, Snapshot) else each
