"""Where torch keeps hooks: every dict of hooks on a model, its parameters, and on all modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, NamedTuple

from nethook.addresses.tree import Tree
from nethook.torch_private import (
    GLOBAL_HOOKS,
    HOOKS_OF_MODULES,
    HOOKS_OF_TENSORS,
    HOOKS_ON_ALL_MODULES,
    HOOKS_ON_ALL_OPTIMIZERS,
    OPTIONS_OF_HOOKS,
)


class HookDict(NamedTuple):
    """One dict of hooks: where it is, of what kind, and the dicts of options beside it."""

    address: str
    kind: str
    hooks: MutableMapping[int, Any]
    options: tuple[MutableMapping[int, Any], ...] = ()


def hooks_on(tree: Tree) -> Iterator[HookDict]:
    """The hook dicts of a model that hold anything: modules, then parameters and buffers."""
    places = [(site.address, site.module) for site in tree.sites]
    for address, module in [*places, *tree.wrappers]:
        for kind, attribute in HOOKS_OF_MODULES.items():
            hooks = getattr(module, attribute)
            if hooks:
                options = tuple(getattr(module, name) for name in OPTIONS_OF_HOOKS.get(kind, ()))
                yield HookDict(address, kind, hooks, options)
    for site in tree.parameters().sites:
        for kind, hooks_of in HOOKS_OF_TENSORS.items():
            hooks = hooks_of(site.tensor)
            if hooks:
                yield HookDict(site.address, kind, hooks)


def optimizer_hooks() -> Iterator[HookDict]:
    """The dicts of hooks that torch calls at every step of every optimizer."""
    return _global(HOOKS_ON_ALL_OPTIMIZERS)


def global_hooks() -> Iterator[HookDict]:
    """The dicts of hooks that torch calls for every module."""
    return _global(HOOKS_ON_ALL_MODULES)


def _global(kinds: Iterable[str]) -> Iterator[HookDict]:
    for kind in kinds:
        if GLOBAL_HOOKS[kind]:
            yield HookDict("*", kind, GLOBAL_HOOKS[kind])
