"""Copies to run instead: of inputs, and of models that could not be put back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import nn
from torch.nn.parameter import UninitializedBuffer

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.hooks.autograd.compact import compact_clone
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.hooks.layouts.fake import is_fake


def own_inputs(inputs: Inputs) -> Inputs:
    """The same arguments with tensors and containers of their own: what is written there is lost.

    A tensor that is given twice is still one: attention looks whether query and key are the same.
    """
    made: dict[int, torch.Tensor] = {}

    def own(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in made:
            made[id(tensor)] = _own(tensor)
        return made[id(tensor)]

    return Inputs(
        map_tensors(own, inputs.args, fresh=True),
        map_tensors(own, dict(inputs.kwargs), fresh=True),
    )


def stand_in(model: nn.Module, inputs: Inputs, *, copied: bool) -> tuple[nn.Module, Inputs]:
    """The model and inputs to rehearse with: copies where asked for, or where nothing else can do.

    A model whose inputs have no data (`meta`) is rehearsed in a copy without data, which takes no
    memory.
    """
    given = [tensor for _, tensor in tensors((inputs.args, dict(inputs.kwargs)))]
    if any(tensor.is_meta for tensor in given):
        if all(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
            return (copy.deepcopy(model), inputs) if copied else (model, inputs)
        return _without_data(model), _map(_to_meta, inputs)
    own = own_inputs(inputs)
    if copied:  # objects among the inputs may be written to as well: a cache of keys
        return copy.deepcopy(model, _unmade(model)), own_objects(own)
    return model, own


def _own(tensor: torch.Tensor) -> torch.Tensor:
    if is_fake(tensor):
        return tensor  # it has no values that could be written
    if not tensor.requires_grad:
        return cheap_copy(tensor)
    # A leaf may not be written in place, what was computed may: each stays what it is.
    copied = cheap_copy(tensor.detach()).requires_grad_()
    return copied if tensor.is_leaf else compact_clone(copied)


def _map(function: Callable[[torch.Tensor], torch.Tensor], inputs: Inputs) -> Inputs:
    return Inputs(map_tensors(function, inputs.args), map_tensors(function, dict(inputs.kwargs)))


def _to_meta(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("meta")


def own_objects(inputs: Inputs) -> Inputs:
    """Copies of everything that is not a tensor; those are copied already."""
    memo: dict[int, Any] = {}
    for _, tensor in tensors((inputs.args, dict(inputs.kwargs))):
        memo[id(tensor)] = tensor
    return Inputs(copy.deepcopy(inputs.args, memo), copy.deepcopy(dict(inputs.kwargs), memo))


def _unmade(model: nn.Module) -> dict[int, Any]:
    """Buffers that are yet to be made, by id, each with another: torch cannot copy them."""
    return {
        id(buffer): cast(Any, UninitializedBuffer)(device=buffer.device, dtype=buffer.dtype)
        for buffer in model.buffers()
        if isinstance(buffer, UninitializedBuffer)
    }


def _without_data(model: nn.Module) -> nn.Module:
    """A copy of a model whose parameters and buffers have no data: it costs no memory."""
    memo: dict[int, Any] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        empty = torch.empty_like(tensor, device="meta")
        if isinstance(tensor, nn.Parameter):
            empty = nn.Parameter(empty, requires_grad=tensor.requires_grad)
        memo[id(tensor)] = empty
    return copy.deepcopy(model, memo)
