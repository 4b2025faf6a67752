"""Putting a changed value where an in-place operation has put its own.

`x += y` and `F.relu(x, inplace=True)` hand their result on in the memory of an argument, which
others hold as well. So a value that takes its place is written there, in a way that autograd
follows; where autograd could not follow, that is refused at once and not in the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch

from nethook.addresses.nested import map_tensors, tensors
from nethook.errors import EditError
from nethook.torch_private import everything_saved_by, storage_id


def put_back(old: Any, new: Any, written: list[torch.Tensor], address: str) -> Any:
    """`new`, but with those tensors of `old` in it that are `written`: changed in place."""
    kept = [tensor for _, tensor in tensors(old)]
    if not any(_among(tensor, written) for tensor in kept):
        return new
    given = [tensor for _, tensor in tensors(new)]
    if len(given) != len(kept):
        raise EditError(
            f"{address!r} writes in place, so an edit there returns a value of the same form, with "
            f"{len(kept)} tensors in it; it returned {type(new).__name__} with {len(given)}."
        )
    pairs = iter(zip(kept, given, strict=True))

    def one(_: torch.Tensor) -> torch.Tensor:
        was, now = next(pairs)
        if was is now or not _among(was, written):
            return now
        _write(was, now, address)
        return was

    return map_tensors(one, new)


def _among(tensor: torch.Tensor, others: list[torch.Tensor]) -> bool:
    return any(tensor is other for other in others)


def _write(target: torch.Tensor, new: torch.Tensor, address: str) -> None:
    if new.shape != target.shape or new.dtype != target.dtype:
        raise EditError(
            f"{address!r} writes in place, so an edit there is written into the same tensor and "
            f"must have its shape {tuple(target.shape)} and type {target.dtype}; it has "
            f"{tuple(new.shape)} and {new.dtype}."
        )
    if torch.is_grad_enabled():
        node = target.grad_fn
        if node is not None and _keeps(node, target):
            raise EditError(
                f"{address!r} writes in place and keeps its result for the backward pass "
                f"({node.name()}), so autograd does not allow another write to it. Edit the "
                "input of the operation, or the module or operation that uses the result."
            )
        if target.is_leaf and target.requires_grad:
            raise EditError(
                f"{address!r} writes in place into a leaf that requires a gradient, which "
                "autograd does not allow. Edit the operation or module that uses it."
            )
    target.copy_(new)


def _keeps(node: Any, tensor: torch.Tensor) -> bool:
    """Whether an autograd node has saved the memory of `tensor`."""
    if tensor.layout is not torch.strided:
        return False
    storage = storage_id(tensor.untyped_storage())
    held = [inner for saved in everything_saved_by(node) for _, inner in tensors(saved)]
    return any(
        storage_id(inner.untyped_storage()) == storage
        for inner in held
        if inner.layout is torch.strided
    )
