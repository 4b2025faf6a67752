"""Compiled models: hooks that compiled code would ignore run eagerly for the scope."""

from __future__ import annotations

from typing import ClassVar

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
