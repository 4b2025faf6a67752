"""Wrapping torch functions for a while.

One stub stands in a function's place, however many wrap it, so wrappers can be taken off in any
order; the last one puts the function back. If others have wrapped the stub meanwhile, it stays
below theirs and only passes calls on.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from nethook.hooks.hook import Hook

# Every wrapper that is on, for `audit`: one that others have wrapped in turn cannot be found from
# the function. What is wrapped is the same for the whole process, and so is this list.
_ON: list[WrappedFunction] = []


class Stub:
    """Stands in a function's place and runs the wrappers around it, the latest outermost."""

    def __init__(self, original: Callable[..., Any], kept: Any = None) -> None:
        functools.update_wrapper(self, original)
        self.original = original
        # What the module or class holds: the function itself, or a staticmethod around it.
        self.kept = original if kept is None else kept
        self.wrappers: list[Hook] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function through all wrappers."""
        call = self.original
        for wrapper in tuple(self.wrappers):
            call = functools.partial(wrapper, call)
        return call(*args, **kwargs)


class WrappedFunction:
    """A handle: one wrapper around one torch function, or a static method of a torch class."""

    def __init__(self, holder: str, name: str, wrapper: Hook) -> None:
        self.function = f"{holder}.{name}"
        self.wrapper = wrapper
        self._holder = _module_or_class(holder)
        self._name = name
        current = getattr(self._holder, name)
        if not isinstance(current, Stub):
            current = Stub(current, vars(self._holder)[name])
            setattr(self._holder, name, current)
        current.wrappers.append(wrapper)
        self._stub = current
        _ON.append(self)

    def remove(self) -> None:
        """Takes the wrapper off. A second call does nothing."""
        if self not in _ON:
            return
        _ON.remove(self)
        stub = self._stub
        stub.wrappers.remove(self.wrapper)
        if not stub.wrappers and getattr(self._holder, self._name) is stub:
            setattr(self._holder, self._name, stub.kept)


def _module_or_class(name: str) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    module, _, cls = name.rpartition(".")
    return getattr(sys.modules[module], cls)


def wrapped_functions() -> Iterator[tuple[str, Hook]]:
    """Every wrapper that is on a torch function now, with the function's name."""
    for handle in _ON:
        yield handle.function, handle.wrapper
