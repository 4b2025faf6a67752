"""How much memory a forward keeps for its backward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.autograd.graph import saved_tensors_hooks


@dataclass
class SavedBytes:
    """The bytes of what autograd has saved; a storage counts once."""

    total: int = 0


@contextmanager
def saved_bytes(apart_from: Iterable[torch.Tensor] = ()) -> Iterator[SavedBytes]:
    """Counts what is saved inside the block, apart from tensors that are there anyway."""
    known = {_storage(tensor) for tensor in apart_from}
    counted = SavedBytes()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is torch.strided and (place := _storage(tensor)) not in known:
            known.add(place)
            counted.total += tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        yield counted


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
