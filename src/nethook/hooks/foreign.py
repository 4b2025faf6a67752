"""Hooks that a forward puts on its own modules, taken off again.

A forward may do so at each call, or once for ever and remember that it has. Hooks of nethook are
left as they are found: their owners take them off. A hook of others that took itself off stays off,
for what it has done besides cannot be undone; one that is a method of a module is put on again, as
the module itself is restored (`nn.LazyLinear` has such).
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import torch
from torch import nn

from nethook.hooks.hook import Hook
from nethook.hooks.listing import OF_MODULES, OF_TENSORS, OPTIONS
from nethook.hooks.suspend import merged_keys

Table = MutableMapping[int, Any]
_FULL = "_is_full_backward_hook"
_ON_A_MODULE = {name: OPTIONS.get(kind, ()) for name, kind in OF_MODULES}


class HooksOfModule:
    """The hooks of others on a module."""

    __slots__ = ("_contents", "_full", "_module", "_tables")

    def __init__(self, module: nn.Module) -> None:
        own = vars(module)
        self._module = module
        self._full = own.get(_FULL)
        self._tables: dict[str, Table] = {}
        self._contents: dict[str, dict[int, Any]] = {}  # of those that hold anything
        for name, options in _ON_A_MODULE.items():
            for each in (name, *options):
                self._tables[each] = own[each]
                if own[each]:
                    self._contents[each] = dict(own[each])

    def put_back(self) -> None:
        """As they were."""
        own = vars(self._module)
        for name, options in _ON_A_MODULE.items():
            table = self._tables[name]
            if own[name] is table and not table and name not in self._contents:
                continue
            kept = _kept(self._contents.get(name, {}), own[name])
            if kept is None and own[name] is table:
                continue
            kept = dict(own[name]) if kept is None else kept
            for each in options:
                flags = {**self._contents.get(each, {}), **own[each]}
                own[each] = self._tables[each]
                _fill(own[each], {key: flag for key, flag in flags.items() if key in kept})
            own[name] = table
            _fill(table, kept)
            if self._full is None and not any(map(_is_ours, kept.values())):
                own[_FULL] = None


class HooksOfTensor:
    """The hooks of others on a parameter."""

    __slots__ = ("_contents", "_tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._contents = {
            name: dict(table)
            for name, _ in OF_TENSORS
            if (table := getattr(tensor, name, None)) is not None
        }

    def put_back(self) -> None:
        """As they were."""
        for name, _ in OF_TENSORS:
            table = getattr(self._tensor, name, None)
            if table is not None:
                kept = _kept(self._contents.get(name, {}), table)
                if kept is not None:
                    _fill(table, kept)


def _is_ours(hook: object) -> bool:
    return isinstance(hook, Hook)


def _is_of_a_module(hook: object) -> bool:
    hook = getattr(hook, "hook", hook)  # torch wraps those of `load_state_dict`
    return isinstance(getattr(hook, "__self__", None), nn.Module)


def _kept(before: dict[int, Any], now: Table) -> dict[int, Any] | None:
    """What a table is to hold; None where it holds that."""
    wanted = {
        key: hook
        for key, hook in [*before.items(), *now.items()]
        if (key in before or _is_ours(hook)) and (key in now or _is_of_a_module(hook))
    }
    if wanted.keys() == now.keys():
        return None
    keys = merged_keys(
        [key for key in before if key in wanted], [key for key in now if key in wanted]
    )
    return {key: wanted[key] for key in keys}


def _fill(table: Table, contents: dict[int, Any]) -> None:
    # The same dict object: the handles of others point to it.
    table.clear()
    table.update(contents)
