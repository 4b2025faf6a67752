"""Copies that cost memory only when one of the two is written to.

A lazy copy parts a tensor from its memory at the next write: the write goes to new memory. Whoever
holds the old memory by its address alone, as a library does that got it through DLPack, would no
longer follow the tensor, and might read what has been freed. Torch keeps no note of such memory,
but it counts the owners, so a lazy copy is made only where no owner is left that we cannot name.
"""

from __future__ import annotations

import torch

from nethook.hooks.autograd.compact import compact_clone
from nethook.torch_private import (
    base_of,
    lazy_clone,
    owners_of,
    saved_tensors_hooks,
    saves_its_result,
    storage_id,
    uses_of,
)


def lazy_copy(
    tensor: torch.Tensor, *, detach: bool = True, or_true: bool = True
) -> torch.Tensor | None:
    """A copy-on-write copy of a tensor, outside its graph; None where torch has none.

    With `detach=False` the copy is part of the graph. With `or_true=False` no true copy is made:
    None, where the copy cannot be lazy.

    It has none for sparse and nested layouts and for memory shared between processes. A true copy
    is made of memory that others may hold: a numpy array, another library, further views. So is
    one of a quantised tensor, for torch 2.13 crashes on its lazy copy, which has lost its
    quantiser.
    """
    try:
        storage = tensor.untyped_storage()
        # Asked before anything is detached, which would be an owner more. One of the owners is
        # `storage`, the other the tensor.
        owners = owners_of(storage_id(storage))
        alone = owners == 2 or (owners == 3 and _second_owner_is_known(tensor))
        if alone and not tensor.requires_grad:
            # With a gradient nothing can be handed out but a detached alias, an owner more.
            # Without one it can be the tensor itself, held by Python and by the other library.
            alone = uses_of(tensor) == 1
        source = tensor.detach() if detach and tensor.requires_grad else tensor
        if not alone or not storage.resizable() or tensor.is_quantized:
            return compact_clone(source) if or_true else None
        return lazy_clone(source)
    except RuntimeError:
        return None


def cheap_copy(tensor: torch.Tensor, *, detach: bool = False) -> torch.Tensor:
    """A lazy copy, and a true one where torch has none."""
    copied = lazy_copy(tensor, detach=detach)
    if copied is not None:
        return copied
    return compact_clone(tensor.detach() if detach else tensor)


def _second_owner_is_known(tensor: torch.Tensor) -> bool:
    """Whether the one owner more is torch's own: the base of a view, or what backward needs."""
    base = base_of(tensor)
    if base is not None:
        # `nn.Linear` returns a view when its input has three dimensions; nobody holds the base
        # but the view, and Python since this line.
        return base.requires_grad or uses_of(base) == 2
    # Rectifiers and softmax save their result for backward, unless a hook took it elsewhere.
    return saves_its_result(tensor.grad_fn) and saved_tensors_hooks(False) is None
