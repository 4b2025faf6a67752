"""Hooks that a forward puts on its own modules, taken off again.

A forward may do so at each call, or once for ever and remember that it has. Hooks of nethook are
left as they are found: their owners take them off. A hook of others that took itself off stays off,
for what it has done besides cannot be undone; one that is a method of a module is put on again, as
the module itself is restored (`nn.LazyLinear` has such).
"""

from __future__ import annotations

from collections.abc import MutableMapping
from operator import is_, itemgetter
from typing import Any

import torch
from torch import nn

from nethook.hooks.hook import Hook
from nethook.hooks.order import merged
from nethook.torch_private import (
    FULL_BACKWARD,
    HOOKS_OF_MODULES,
    HOOKS_OF_TENSORS,
    OPTIONS_OF_HOOKS,
)

Table = MutableMapping[int, Any]
_ON_A_MODULE = {
    attribute: OPTIONS_OF_HOOKS.get(kind, ()) for kind, attribute in HOOKS_OF_MODULES.items()
}
_NAMES = tuple(table for name, options in _ON_A_MODULE.items() for table in (name, *options))
_tables_of = itemgetter(*_NAMES)
_NOTHING: dict[Any, Any] = {}
_TABLES_OF_TENSORS = tuple(HOOKS_OF_TENSORS.values())
_NONE = [_NOTHING for _ in _TABLES_OF_TENSORS]


class HooksOfModule:
    """The hooks of others on a module."""

    __slots__ = ("_contents", "_full", "_module", "_tables")

    def __init__(self, module: nn.Module) -> None:
        own = vars(module)
        self._module = module
        self._full = own.get(FULL_BACKWARD)
        self._tables: tuple[Table, ...] = _tables_of(own)
        # By the name of the table, for those that hold anything; most modules have none.
        self._contents = (
            {name: dict(table) for name, table in zip(_NAMES, self._tables, strict=True) if table}
            if any(self._tables)
            else _NOTHING
        )

    def put_back(self) -> None:
        """As they were."""
        own = vars(self._module)
        now = _tables_of(own)
        same = all(map(is_, now, self._tables))
        if same and not self._contents and not any(now):
            return
        before = dict(zip(_NAMES, self._tables, strict=True))
        for name, options in _ON_A_MODULE.items():
            kept = _kept(self._contents.get(name, _NOTHING), own[name])
            if kept is None and own[name] is before[name]:
                continue
            kept = dict(own[name]) if kept is None else kept
            for option in options:
                flags = {**self._contents.get(option, _NOTHING), **own[option]}
                own[option] = before[option]
                _fill(own[option], {key: flag for key, flag in flags.items() if key in kept})
            own[name] = before[name]
            _fill(own[name], kept)
            if self._full is None and not any(map(_is_ours, kept.values())):
                own[FULL_BACKWARD] = None


class HooksOfTensor:
    """The hooks of others on a parameter."""

    __slots__ = ("_contents", "_tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        tables = _hooks_of(tensor)
        self._contents = [dict(table or _NOTHING) for table in tables] if any(tables) else _NONE

    def put_back(self) -> None:
        """As they were."""
        tables = _hooks_of(self._tensor)
        if not any(tables):
            return
        for before, table in zip(self._contents, tables, strict=True):
            if table:
                kept = _kept(before, table)
                if kept is not None:
                    _fill(table, kept)


def _hooks_of(tensor: torch.Tensor) -> list[Table | None]:
    return [hooks_of(tensor) for hooks_of in _TABLES_OF_TENSORS]


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
    keys = merged([key for key in before if key in wanted], [key for key in now if key in wanted])
    return {key: wanted[key] for key in keys}


def _fill(table: Table, contents: dict[int, Any]) -> None:
    # The same dict object: the handles of others point to it.
    table.clear()
    table.update(contents)
