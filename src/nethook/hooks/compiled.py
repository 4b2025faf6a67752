"""Compiled models: hooks that compiled code would ignore run eagerly for the scope."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from nethook.addresses.tree import Tree
from nethook.addresses.wrappers import can_be_compiled, is_compiled


def eager_where_compiled(tree: Tree) -> AbstractContextManager[None]:
    """A context in which compiled parts of a model run eagerly, and so call their hooks.

    Code that was compiled before a hook came does not know of it and would pass it by in
    silence. The compiled code stays as it is and is used again after the context.
    """
    if can_be_compiled():
        wrapped = any(is_compiled(module) for _, module in tree.wrappers)
        if wrapped or [m for m in tree.modules if m._compiled_call_impl is not None]:
            eager: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
            return eager
    return nullcontext()
