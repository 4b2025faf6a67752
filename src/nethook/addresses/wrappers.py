"""Modules that only wrap another one, and under which attribute they keep it.

A wrapper is transparent: `fc1` inside `DataParallel(torch.compile(model))` is still `fc1`.
Wrappers are recognised by class. Their classes are looked up among the modules that are already
imported: where `torch._dynamo` was never imported (it takes seconds) nothing can be compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import cast

from torch import nn

from nethook.torch_private import COMPILER, WRAPPERS, children_of, compiled_call_of, is_compiled


def _attribute(cls: type[nn.Module]) -> str | None:
    for source, name, attribute in WRAPPERS:
        wrapper = getattr(sys.modules.get(source), name, None)
        if wrapper is not None and issubclass(cls, wrapper):
            return attribute
    return None


# The attribute under which a class of wrappers keeps what it wraps; None for any other class. The
# answer for a class never changes, for its bases were imported before it.
wrapped_attribute = cast(
    Callable[[type[nn.Module]], str | None], lru_cache(maxsize=4096)(_attribute)
)


def inside(module: nn.Module) -> tuple[str, nn.Module] | None:
    """What a wrapper keeps and under which attribute; None if `module` wraps nothing."""
    attribute = wrapped_attribute(type(module))
    if attribute is None:
        return None
    # A subclass with modules of its own does not only wrap: looking through would hide them.
    children = {key: child for key, child in children_of(module).items() if child is not None}
    return (attribute, children[attribute]) if list(children) == [attribute] else None


def unwrap(model: nn.Module) -> nn.Module:
    """The module inside all wrappers around `model`; `model` itself when there are none."""
    while (wrapped := inside(model)) is not None:
        model = wrapped[1]
    return model


def can_be_compiled() -> bool:
    """Whether anything can have been compiled in this process."""
    return COMPILER in sys.modules


def runs_compiled(module: nn.Module) -> bool:
    """Whether a model or a part of it runs in a compiled graph."""
    return can_be_compiled() and any(
        is_compiled(part) or compiled_call_of(part) is not None for part in module.modules()
    )
