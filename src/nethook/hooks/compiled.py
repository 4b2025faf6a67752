"""Compiled models: hooks that compiled code would ignore run eagerly for the scope."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import torch

from nethook.addresses.tree import Tree
from nethook.addresses.wrappers import can_be_compiled, is_compiled
from nethook.hooks.attachment import Attachment


def run_eagerly_where_compiled(tree: Tree, hooks: Attachment) -> None:
    """Lets compiled parts of a model run eagerly, and so call their hooks, while `hooks` are on.

    Code that was compiled before a hook came does not know of it and would pass it by in
    silence. The compiled code stays as it is and is used again afterwards.
    """
    if not can_be_compiled():
        return
    wrapped = any(is_compiled(module) for _, module in tree.wrappers)
    if wrapped or [m for m in tree.modules if m._compiled_call_impl is not None]:
        hooks.add(_Eager())


def without_warning_of_global_hooks(hooks: Attachment) -> None:
    """Lets torch be silent about global hooks on compiled modules while `hooks` are on.

    It warns that such a hook is called for the wrapper as well. Ours know that, and look through.
    """
    if can_be_compiled():
        hooks.add(_Silent())


class _Silent:
    """A handle: one filter among those of `warnings`."""

    __slots__ = ("_filter",)

    _TEXT = r"Using `torch.compile\(module\)` when there are global hooks"

    def __init__(self) -> None:
        warnings.filterwarnings("ignore", self._TEXT, UserWarning)
        self._filter = warnings.filters[0]

    def remove(self) -> None:
        # The filters may be others by now: a `catch_warnings` was left.
        filters: list[Any] = warnings.filters  # type: ignore[assignment]  # a list, as documented
        for at, each in enumerate(filters):
            if each is self._filter:
                del filters[at]
                return


class _Eager:
    """A handle: everything that was compiled runs eagerly until it is removed."""

    # Those that are on. A stance restores the one before it, and so must be left in order; scopes
    # may be left in any.
    _on: ClassVar[list[_Eager]] = []

    __slots__ = ("_stance",)

    def __init__(self) -> None:
        self._stance = torch.compiler.set_stance("force_eager")  # in force from here on
        self._on.append(self)

    def remove(self) -> None:
        if self not in self._on:
            return
        self._on.remove(self)
        for other in self._on:
            if other._stance.prev is self._stance.stance:
                other._stance.prev = self._stance.prev
                return
        self._stance.__exit__(None, None, None)
