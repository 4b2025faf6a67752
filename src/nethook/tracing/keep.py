"""How a tensor that passes by is kept.

A lazy copy (copy-on-write) costs no memory until one of the two is written, and then the captured
one keeps its value. Where torch cannot make one (memory that torch did not allocate, sparse and
nested layouts, tensors inside a graph that the user wants to keep), a reference is kept with the
tensor's version, and reading it after a write is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from nethook.addresses.nested import map_tensors
from nethook.errors import OverwrittenError

Keep = Callable[[torch.Tensor], Any]


class Reference:
    """A tensor that others may write to, and the version it had when it was captured."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        try:
            self.version: int | None = tensor._version
        except RuntimeError:  # an inference tensor has none: a write to it cannot be noticed
            self.version = None

    def read(self, what: str) -> torch.Tensor:
        """The tensor, if nobody has written to it since."""
        if self.version is not None and self.tensor._version != self.version:
            raise OverwrittenError(
                f"{what} was captured by reference and has been written in place since "
                f"({self.tensor._version - self.version} times), so its value is gone. "
                "Trace with copy=True."
            )
        return self.tensor


def keeper(
    *,
    copy: bool | None,
    detach: bool,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
    transform: Callable[[torch.Tensor], Any] | None,
) -> Keep:
    """The function that keeps one tensor, for one set of options."""
    own = {None: _lazy, True: torch.Tensor.clone, False: Reference}[copy]
    if device is None and dtype is None and transform is None:
        if not detach:
            return own
        return _detached_lazy if copy is None else lambda tensor: own(tensor.detach())

    def keep(tensor: torch.Tensor) -> Any:
        value: Any = tensor.detach() if detach else tensor
        if transform is not None:
            # What it is given may be a lazy copy, so that writing to it cannot reach the network.
            value = transform(_private(value))
            if not isinstance(value, torch.Tensor):
                return value
            if detach:
                value = value.detach()
        cast = dtype if dtype is not None and value.is_floating_point() else None
        return own(value.to(device=device, dtype=cast))

    return keep


def keep_value(keep: Keep, value: Any) -> Any:
    """A nested value with each tensor kept."""
    return keep(value) if isinstance(value, torch.Tensor) else map_tensors(keep, value)


def read_value(value: Any, what: str) -> Any:
    """A nested value as it was captured; raises where a part of it was overwritten."""
    if type(value) is torch.Tensor:
        return value
    if isinstance(value, Reference):
        return value.read(what)
    return map_tensors(_same, value, lambda each: _read_reference(each, what))


def held_tensors(value: Any) -> list[torch.Tensor]:
    """Every tensor that a kept value holds."""
    held: list[torch.Tensor] = []

    def note(each: Any) -> Any:
        if isinstance(each, torch.Tensor | Reference):
            held.append(each.tensor if isinstance(each, Reference) else each)
        return each

    map_tensors(note, value, note)
    return held


def _detached_lazy(tensor: torch.Tensor) -> Any:
    # The hot path of a trace: one call less than _lazy(tensor.detach()).
    tensor = tensor.detach()
    try:
        return torch._lazy_clone(tensor)
    except RuntimeError:
        return _where_not_lazy(tensor)


def _lazy(tensor: torch.Tensor) -> Any:
    if tensor.requires_grad:
        return Reference(tensor)  # a copy would lie outside the graph that the user wants
    try:
        return torch._lazy_clone(tensor)
    except RuntimeError:
        return _where_not_lazy(tensor)


def _where_not_lazy(tensor: torch.Tensor) -> Any:
    return tensor.clone() if tensor.is_inference() else Reference(tensor)


def _private(tensor: torch.Tensor) -> torch.Tensor:
    kept = _lazy(tensor)
    return kept.tensor if isinstance(kept, Reference) else kept


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _read_reference(each: Any, what: str) -> Any:
    return each.read(what) if isinstance(each, Reference) else each
