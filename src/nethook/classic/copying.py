"""`recursive_copy`: the tensors inside a value, cloned, detached, or told to keep gradients."""

from __future__ import annotations

from typing import Any

import torch

from nethook.addresses.nested import map_tensors
from nethook.hooks.autograd.retain import keep_gradient


def recursive_copy(
    x: Any,
    clone: bool | None = None,
    detach: bool | None = None,
    retain_grad: bool | None = None,
) -> Any:
    """Copies the tensors in a nested value; without an option it returns the value itself.

        nethook.recursive_copy(output, clone=True, detach=True)

    Arguments:
        x: a tensor, or dicts, lists, tuples, named tuples, dataclasses and `ModelOutput`s that
            hold some, at any depth. Anything else in it (None, numbers, caches) stays as it is.
        clone: whether each tensor gets memory of its own.
        detach: whether each tensor is taken out of its graph.
        retain_grad: whether the tensors returned are to have a `.grad` after a backward pass.
            They require a gradient then; `detach` is not heeded.
    """
    if not (clone or detach or retain_grad):
        return x

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        if not retain_grad:
            tensor = tensor.detach() if detach else tensor
            return tensor.clone() if clone else tensor
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor.clone() if clone else tensor  # numbers that no gradient can reach
        # The one that is returned keeps the gradient, so the clone comes first.
        tensor = tensor.clone() if clone else tensor
        if not tensor.requires_grad:
            # A tensor of our own on the same memory: the other may be the user's data.
            tensor = tensor.detach().requires_grad_()
        keep_gradient(tensor)
        return tensor

    return map_tensors(copied, x)
