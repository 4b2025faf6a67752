"""Copies that cost memory only when one of the two is written to."""

from __future__ import annotations

import torch


def lazy_copy(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy-on-write copy of a tensor that requires no gradient; None where torch has none.

    It has none for sparse and nested layouts and for memory shared between processes. A true copy
    is made of memory that a numpy array shares: after a lazy one the next write would go to new
    memory, and the array would no longer follow its tensor. So is one of a quantised tensor, for
    torch 2.13 crashes on its lazy copy, which has lost its quantiser.
    """
    try:
        if not tensor.untyped_storage().resizable() or tensor.is_quantized:
            return tensor.clone()
        return torch._lazy_clone(tensor)
    except RuntimeError:
        return None


def cheap_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A lazy copy, and a true one where torch has none."""
    copied = lazy_copy(tensor)
    return tensor.clone() if copied is None else copied
