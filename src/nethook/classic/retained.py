"""What is kept of a value that passes by, safe from later writes.

The classic tools kept references, so that an in-place operation after the layer (`ReLU(inplace=
True)`, `h += x`) changed what they had retained. Here each tensor has a lazy copy beside it, which
costs memory only when somebody writes.
"""

from __future__ import annotations

from typing import Any

import torch

from nethook.addresses.nested import map_tensors
from nethook.classic.copying import recursive_copy
from nethook.editing.parameters import lazy_copy
from nethook.errors import OverwrittenError
from nethook.hooks.quiet import quiet
from nethook.tracing.keep import Reference

_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


class Snapshot:
    """A tensor, and a lazy copy for the case that it is written to."""

    __slots__ = ("_copy", "_reference")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._reference = Reference(tensor)
        self._copy = lazily(tensor)

    def read(self) -> torch.Tensor:
        """The very tensor, or the copy if somebody has written to it since."""
        if self._reference.version is None:  # an inference tensor: nobody can tell
            return self._copy
        try:
            return self._reference.read("")
        except OverwrittenError:
            return self._copy


def lazily(tensor: torch.Tensor) -> torch.Tensor:
    """A lazy copy, in the same graph; unnoticed by modes and tensor subclasses of the user's."""
    with quiet():
        copy = lazy_copy(tensor)
        cls = type(tensor)
        return copy.as_subclass(cls) if type(copy) is torch.Tensor and cls not in _PLAIN else copy


def retain(value: Any, *, clone: bool | None = False, detach: bool | None = False) -> Any:
    """A nested value as it is now; `read` gives it back."""
    if clone:
        return recursive_copy(value, clone=True, detach=detach)
    value = recursive_copy(value, detach=detach)
    # Inside a graph the very tensor is wanted: `torch.autograd.grad` can be taken of no other.
    return map_tensors(lambda t: Snapshot(t) if t.requires_grad else lazily(t), value, fresh=True)


def note(value: Any) -> Any:
    """A nested value as it is now; `read` gives the very tensors back that nobody wrote to."""
    return map_tensors(Snapshot, value, fresh=True)


def read(value: Any) -> Any:
    """What `retain` or `note` was given, as it was then."""
    return map_tensors(_same, value, _read)


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _read(each: Any) -> Any:
    return each.read() if isinstance(each, Snapshot) else each
