"""A few elements of a tensor, without a copy of it.

`tensor.reshape(-1)[::step]` copies all of a tensor that does not lie in one piece: of one that is
expanded to 2**40 elements, more than any machine has. Here only the elements that are asked for are
looked up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

INDEXABLE: Final = frozenset(
    {
        torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.uint8,
        torch.int8, torch.int16, torch.int32, torch.int64, torch.complex32, torch.complex64,
        torch.complex128,
    }
)  # fmt: skip
"""Types of which every torch looks up elements. Torch 2.9 and before cannot where they are float8
or unsigned integers of more than 8 bits."""
INTEGERS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Bytes of an element -> integers of that size."""


def sampled(tensor: Tensor, most: int, *, dim: int = 0, step: int | None = None) -> Tensor:
    """Up to `most` elements of a strided tensor, evenly spread, in order, as one dimension.

    Arguments:
        tensor: any strided tensor.
        most: how many elements.
        dim: dimensions before this one stay as they are.
        step: from one element to the next; None: as large as can be.

    Returns:
        A tensor of shape `(*tensor.shape[:dim], elements)`; it may be a view.
    """
    kept, inner = tensor.shape[:dim], tensor.shape[dim:]
    elements = math.prod(inner)
    step = max(1, elements // most) if step is None else step
    if tensor.is_contiguous():
        return tensor.view(*kept, elements)[..., ::step][..., :most]
    count = min(most, -(-elements // step))
    if not inner:
        return tensor.unsqueeze(-1)
    places = torch.arange(count, device=tensor.device) * step
    return looked_up(tensor, (slice(None),) * dim + digits(places, inner))


def looked_up(tensor: Tensor, index: tuple[slice | Tensor, ...]) -> Tensor:
    """`tensor[index]`, also of types for which this torch has no such operation."""
    if tensor.dtype in INDEXABLE or tensor.element_size() not in INTEGERS:
        return tensor[index]
    return tensor.view(INTEGERS[tensor.element_size()])[index].view(tensor.dtype)


def digits(places: Tensor, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Places in the order of a shape as an index along each of its dimensions."""
    index: list[Tensor] = []
    for size in reversed(shape):
        index.append(places % max(size, 1))
        places = places // max(size, 1)
    return tuple(reversed(index))


def both_parts(matrix: Tensor) -> Tensor:
    """`(rows, columns)` of complex numbers as twice as many columns of real ones; others as is."""
    if not matrix.is_complex():
        return matrix
    return torch.view_as_real(matrix.resolve_conj()).flatten(1)
