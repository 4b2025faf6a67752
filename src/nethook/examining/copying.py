"""Copies of a model to run aside, and the models of which none can be made."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from nethook.addresses.nested import tensors
from nethook.addresses.tree import Tree
from nethook.addresses.wrappers import unwrap
from nethook.examining.refusals import NotReplayableError
from nethook.hooks.hook import is_ours
from nethook.hooks.layouts.unhookable import Router
from nethook.hooks.modes import quiet
from nethook.hooks.registries import global_hooks, hooks_on
from nethook.hooks.stack import raised_by_signal
from nethook.restoring.python_state import MOST_ITEMS, every_module
from nethook.stats.memory import bytes_held
from nethook.stats.shards import is_shared


def bare(model: nn.Module) -> nn.Module:
    """The model inside of wrappers: a copy needs no compiler and no process group."""
    return unwrap(model)


def why_not_copied(model: nn.Module) -> str:
    """Why a model is not run aside, in words; "" where it may be."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "the process is one of a group (torch.distributed)"
    if any(isinstance(module, torch.jit.ScriptModule) for module in every_module(model)):
        return "the model, or a part of it, is compiled TorchScript"
    for tensor in (*model.parameters(), *model.buffers()):
        if is_shared(tensor):
            return "its parameters are spread over processes"
        if isinstance(tensor, UninitializedTensorMixin):
            return "a parameter has no shape yet"
        if tensor.is_meta:
            return "a parameter has no values (it is on the meta device)"
    foreign = _foreign_hook(model)
    return f"other code has hooks on it ({foreign})" if foreign else ""


def _foreign_hook(model: nn.Module) -> str:
    own = {id(module) for module in every_module(model)}
    tree = Tree(model)
    for table in (*hooks_on(tree), *global_hooks()):
        for hook in table.hooks.values():
            if not (is_ours(hook) or isinstance(hook, Router) or _comes_along(hook, own)):
                named = hook if hasattr(hook, "__qualname__") else type(hook)
                return f"{getattr(named, '__qualname__', '?')} at {table.address or 'the model'}"
    for module in every_module(model):
        if "forward" in vars(module):
            return f"forward of {type(module).__name__} was replaced"
    return ""


def _comes_along(hook: object, own: set[int]) -> bool:
    """Whether a hook is torch's own (weight norm), or a method of the model: copies have theirs."""
    hook = getattr(hook, "hook", hook)  # torch wraps those of `load_state_dict`
    holder = getattr(hook, "__self__", None)
    if holder is not None and id(holder) in own:
        return True
    kind = hook if hasattr(hook, "__qualname__") else type(hook)
    return str(getattr(kind, "__module__", "")).partition(".")[0] == "torch"


def _held(module: nn.Module) -> list[torch.Tensor]:
    """Tensors among the attributes of a module; a container of very many things is not opened."""
    values = [
        value
        for value in vars(module).values()
        if not (isinstance(value, list | tuple | dict) and len(value) > MOST_ITEMS)
    ]
    return [tensor for _, tensor in tensors(values)]


def model_bytes(model: nn.Module) -> int:
    """Bytes that a copy of a model takes: parameters and buffers, and tensors that it holds."""
    held: dict[int, torch.Tensor] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        held[id(tensor)] = tensor
    for module in every_module(model):
        for tensor in _held(module):
            held[id(tensor)] = tensor
    return sum(bytes_held(tensor) for tensor in held.values())


def copy_of(model: nn.Module, *, share_parameters: bool = False) -> nn.Module:
    """A copy with nothing in common with the model but code, and parameters where these are shared.

    Raises:
        NotReplayableError: it cannot be copied.
    """
    memo: dict[int, Any] = {}
    if share_parameters:
        memo = {id(parameter): parameter for parameter in model.parameters()}
    with quiet(), torch.no_grad(), torch.inference_mode(False):
        for module in every_module(model):
            # Torch refuses to copy what has a history: a state that is carried from call to call.
            for tensor in _held(module):
                if not tensor.is_leaf:
                    memo[id(tensor)] = tensor.detach().clone()
        try:
            return copy.deepcopy(model, memo)
        except Exception as error:
            if raised_by_signal(error):
                raise
            raise NotReplayableError(
                f"the model cannot be copied ({type(error).__name__}: {str(error)[:120]})"
            ) from error
