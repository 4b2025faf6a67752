"""The memory of a tensor of any kind: the dense pieces that hold it, and their bytes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from nethook.stats.native.readable import is_plain
from nethook.stats.repeats import stored_elements
from nethook.stats.shards import local_part
from nethook.torch_private import sparse_indices, sparse_values

_ROWS = (torch.sparse_csr, torch.sparse_bsr)
_COLUMNS = (torch.sparse_csc, torch.sparse_bsc)


def pieces(tensor: Tensor) -> list[Tensor]:
    """The strided tensors that hold a tensor in this process; itself, where it is one."""
    held = local_part(tensor)
    if held is None:
        return []
    if held.is_nested:
        return [held.values()]
    layout = held.layout
    if layout is torch.sparse_coo:
        return [sparse_indices(held), sparse_values(held)]
    if layout in _ROWS:
        return [held.crow_indices(), held.col_indices(), held.values()]
    if layout in _COLUMNS:
        return [held.ccol_indices(), held.row_indices(), held.values()]
    return [held]


def sizes(tensor: Tensor) -> list[int] | None:
    """The shape of a tensor of any kind.

    Of a nested one, whose parts differ along a dimension, how many parts it has. None of a
    parameter that has no shape yet.
    """
    if is_lazy(tensor):
        return None
    return [tensor.size(0)] if tensor.is_nested else list(tensor.shape)


def bytes_held(tensor: Tensor) -> int:
    """The bytes of memory that a tensor shows, however often it shows them."""
    if is_plain(tensor) and tensor.is_contiguous():
        return tensor.nbytes  # nearly every one
    if tensor.is_meta or is_lazy(tensor):
        return 0
    return sum(stored_elements(piece) * piece.element_size() for piece in pieces(tensor))
