"""Copies of expanded and overlapping tensors that cost what their memory costs.

`x[:1].expand(2**40)` stores one element, and `x.unfold(0, 1000, 1)` as many as `x`. Torch's own
`clone()` and `to()` write out every element that such a tensor shows. Here each stored element is
copied once, and the copy shows it as often as the tensor does.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def compact_clone(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with memory of its own; part of the graph where the tensor is."""
    return compactly(torch.Tensor.clone, tensor)


def compactly(
    convert: Callable[[torch.Tensor], torch.Tensor], tensor: torch.Tensor
) -> torch.Tensor:
    """`convert(tensor)` for a function of single elements, such as a change of type."""
    if not _is_repeated(tensor):
        return convert(tensor)
    once = _unexpanded(tensor)
    made = convert(stored(once))
    if made.shape != once.shape:
        made = made.as_strided(once.shape, once.stride(), made.storage_offset())
    return made.expand(tensor.shape)


def stored(tensor: torch.Tensor) -> torch.Tensor:
    """A view of the memory of a tensor: it can be written to where the tensor itself cannot."""
    if not _is_repeated(tensor):
        return tensor
    once = _unexpanded(tensor)
    if (span := _span(once)) >= once.numel():
        return once
    # Windows that overlap: all that lies between the first element and the last.
    return once.as_strided((span,), (1,), once.storage_offset())


def _unexpanded(tensor: torch.Tensor) -> torch.Tensor:
    """A view in which every expanded dimension has size 1."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _is_repeated(tensor: torch.Tensor) -> bool:
    """Whether a tensor has more elements than it stores."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_contiguous():
        return False
    return _span(tensor) < tensor.numel()


def _span(tensor: torch.Tensor) -> int:
    """How many elements of memory lie between the first and the last one."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((size - 1) * stride for size, stride in sizes)
