"""A few elements of a tensor, without a copy of it.

`tensor.reshape(-1)[::step]` copies all of a tensor that does not lie in one piece: of one that is
expanded to 2**40 elements, more than any machine has. Here only the elements that are asked for are
looked up.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


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
    places = torch.arange(count, device=tensor.device) * step
    index: list[Tensor] = []
    for size in reversed(inner):
        index.append(places % max(size, 1))
        places = places // max(size, 1)
    if not inner:
        return tensor.unsqueeze(-1)
    return tensor[(slice(None),) * dim + tuple(reversed(index))]
