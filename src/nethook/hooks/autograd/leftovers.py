"""At the end of a scope: no gradient hook of it stays on tensors that live on in the model.

A hook on a tensor inside a graph dies with the graph. But a model may keep an output (as a buffer,
an attribute, in a cache), and then the hook would be seen on the model after the scope, and would
record the backward passes of later forwards that compute with it.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import quiet
from nethook.torch_private import base_of, buffers_of, hooks_of_tensor

FARTHEST = 20_000
"""Objects that are looked at in the attributes of a model; what lies behind them is not found."""

_KEY = 0  # of the sweep in `Owner.late`, where others stand under their id: no id is 0
_STANDARD = frozenset(vars(nn.Module()))  # what every module has: tables of hooks, children
# From these on one would reach the whole program: a function holds the globals of its file.
_NO_HOLDERS = (type, types.ModuleType, types.FunctionType, types.CodeType, types.FrameType, str)


class OnGraph(Hook):
    """A hook on a tensor inside a graph that is told when it is taken off by a sweep."""

    __slots__ = ()

    def taken_off(self, tensor: torch.Tensor) -> None:
        """The tensor lives on in the model, and the scope has ended."""


class Sweep:
    """Told when the attachment of an owner is removed."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def remove(self) -> None:
        """Takes the owner's hooks off every tensor that its models keep."""
        owner = self._owner
        owner.late.pop(_KEY, None)
        models = [model for root in owner.roots if (model := root()) is not None]
        with quiet():
            for tensor in kept_tensors(*models):
                _take_off(tensor, owner)
                base = base_of(tensor) if tensor.requires_grad else None
                if base is not None:
                    _take_off(base, owner)


def sweep_at_the_end(owner: Owner) -> None:
    """To be called by what puts hooks of `owner` on tensors inside a graph."""
    if owner.roots and _KEY not in owner.late:
        owner.late[_KEY] = Sweep(owner)


def _take_off(tensor: torch.Tensor, owner: Owner) -> None:
    hooks: Any = hooks_of_tensor(tensor) or {}
    for key, hook in list(hooks.items()):
        if isinstance(hook, Hook) and hook.owner is owner:
            del hooks[key]
            if isinstance(hook, OnGraph):
                hook.taken_off(tensor)


def kept_tensors(*models: nn.Module) -> Iterator[torch.Tensor]:
    """The tensors that modules hold besides their parameters: buffers, and in attributes.

    Found without running code of the user's, in whatever objects they lie.
    """
    left = FARTHEST
    seen: set[int] = set()
    for model in models:
        for module in model.modules():
            own = [value for name, value in vars(module).items() if name not in _STANDARD]
            waiting: list[Any] = [*buffers_of(module).values(), *own]
            while waiting and left:
                value = waiting.pop()
                if issubclass(type(value), torch.Tensor):
                    if id(value) not in seen:
                        seen.add(id(value))
                        yield value
                elif gc.is_tracked(value) and id(value) not in seen:
                    left -= 1
                    seen.add(id(value))
                    if not issubclass(type(value), (nn.Module, Hook, *_NO_HOLDERS)):
                        waiting += gc.get_referents(value)
