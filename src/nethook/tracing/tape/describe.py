"""What a kept value looks like, in a few words: shapes, types and bytes."""

from __future__ import annotations

from typing import Any

import torch

from nethook.hooks.modes import quiet
from nethook.stats.memory import bytes_held
from nethook.tracing.keep import held_tensors


def shapes(value: Any) -> str:
    """The shapes of the first tensors that a kept value holds, as text."""
    held = held_tensors(value)
    if not held:
        return "–"
    with quiet():
        first = ", ".join(_shape(tensor) for tensor in held[:2])
    return f"{first} and {len(held) - 2} more" if len(held) > 2 else first


def dtypes(value: Any) -> str:
    """The types of the tensors that a kept value holds, as text."""
    with quiet():
        names = [str(tensor.dtype).removeprefix("torch.") for tensor in held_tensors(value)]
    return ", ".join(dict.fromkeys(names))


def memory(value: Any) -> int:
    """The bytes of memory that all tensors of a kept value show."""
    with quiet():
        return sum(bytes_held(tensor) for tensor in held_tensors(value))


def _shape(tensor: torch.Tensor) -> str:
    if tensor.is_nested:  # it has no shape; its parts differ along one dimension
        return f"nested, {tensor.size(0)} parts"
    return str(tuple(tensor.shape))
