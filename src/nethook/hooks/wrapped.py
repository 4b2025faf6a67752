"""Wrapping torch functions for a while.

One stub stands in a function's place, however many wrap it, so wrappers can be taken off in any
order; the last one puts the function back. If others have wrapped the stub meanwhile, it stays
below theirs and only passes calls on.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from nethook.hooks.hook import Hook
from nethook.hooks.warnings import hide_from_warnings

# Every wrapper that is on, for `audit`: one that others have wrapped in turn cannot be found from
# the function. What is wrapped is the same for the whole process, and so is this list.
_ON: list[WrappedFunction] = []


class Stub:
    """Stands in a function's place and runs the wrappers around it, the latest outermost."""

    def __init__(self, kept: Any, inherited: Callable[..., Any] | None = None) -> None:
        # What the module or class holds: the function itself, or a staticmethod around it.
        self.kept = kept
        static = isinstance(kept, staticmethod)
        self.original: Callable[..., Any] = inherited or (kept.__func__ if static else kept)
        self.wrappers: list[Hook] = []
        self.function = self._function()
        self.placed = staticmethod(self.function) if static else self.function
        """What stands in its place: a function too, for nothing else is called as quickly."""

    def _function(self) -> Callable[..., Any]:
        original, wrappers = self.original, self.wrappers

        def call(*args: Any, **kwargs: Any) -> Any:
            if len(wrappers) == 1:
                return wrappers[0](original, *args, **kwargs)
            through = original
            for wrapper in tuple(wrappers):
                through = functools.partial(wrapper, through)
            return through(*args, **kwargs)

        hide_from_warnings(call)
        functools.update_wrapper(call, original)
        vars(call)[_MARK] = self
        return call


_MARK: Final = "_nethook_stub"
# The last stub of each function, by the id of what holds it and its name: a scope may be opened in
# every step, and making a stub costs more than all the rest. A stub that is not in use has no
# wrapper; it holds the function that it stood for.
_made: Final[dict[tuple[int, str], Stub]] = {}


_INHERITED: Final = object()
"""In place of what a class holds, where it has a method from a base class."""


def _stub_of(placed: Any) -> Stub | None:
    """The stub that stands in a place, if one does."""
    function = placed.__func__ if isinstance(placed, staticmethod) else placed
    stub = getattr(function, _MARK, None)
    # `functools.wraps` gives the mark to what others wrap around it, too.
    return stub if isinstance(stub, Stub) and stub.function is function else None


class WrappedFunction:
    """A handle: one wrapper around one torch function.

    Arguments:
        holder: what the function is looked up in: the name of a module or class, or the class. A
            class may have it from a base class, which is left alone.
        name: its name there.
        wrapper: called as `wrapper(function, *args, **kwargs)`; returns what the call returns.
        on: whether it is on when it is made. Who is called amid a training makes it first, keeps
            it, and puts it on then: an interrupt in between leaves nothing behind.
    """

    def __init__(self, holder: str | type, name: str, wrapper: Hook, *, on: bool = True) -> None:
        self.wrapper = wrapper
        self._path = holder
        self._holder = _module_or_class(holder) if isinstance(holder, str) else holder
        self._name = name
        self._stub: Stub | None = None
        hide_from_warnings(type(wrapper).__call__)
        if on:
            self.put_on()

    @property
    def function(self) -> str:
        """What it wraps, with the name of what holds it."""
        holder = self._path
        path = holder if isinstance(holder, str) else f"{holder.__module__}.{holder.__qualname__}"
        return f"{path}.{self._name}"

    def put_on(self) -> None:
        """Puts the wrapper on again after it was taken off. A second call does nothing."""
        if self in _ON:
            return
        inherited: Callable[..., Any] | None = None
        current = vars(self._holder).get(self._name, _INHERITED)
        if current is _INHERITED:
            inherited = getattr(self._holder, self._name)
        key = id(self._holder), self._name
        stub = _made.get(key)
        if stub is None or (current is not stub.kept and current is not stub.placed):
            stub = _stub_of(current)
            if stub is None or current is not stub.placed:
                stub = _made[key] = Stub(current, inherited)
        # In the order in which `remove` can take off what an interrupt has left half-way.
        self._stub = stub
        _ON.append(self)
        stub.wrappers.append(self.wrapper)
        if current is not stub.placed:
            setattr(self._holder, self._name, stub.placed)

    def remove(self) -> None:
        """Takes the wrapper off. A second call does nothing."""
        if self not in _ON:
            return
        stub = self._stub
        assert stub is not None
        if self.wrapper in stub.wrappers:
            stub.wrappers.remove(self.wrapper)
        in_place = vars(self._holder).get(self._name) is stub.placed
        if in_place and not stub.wrappers:
            if stub.kept is _INHERITED:
                delattr(self._holder, self._name)
            else:
                setattr(self._holder, self._name, stub.kept)
        _ON.remove(self)


class WrappedFunctions:
    """A handle: wrappers that are off when they are made, and go on and off together."""

    def __init__(self, handles: Iterable[WrappedFunction]) -> None:
        self._handles = tuple(handles)

    def put_on(self) -> None:
        """Puts the wrappers on."""
        for handle in self._handles:
            handle.put_on()

    def remove(self) -> None:
        """Takes the wrappers off; `put_on` can put them on again."""
        for handle in self._handles:
            handle.remove()


def _module_or_class(name: str) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    module, _, cls = name.rpartition(".")
    return getattr(sys.modules[module], cls)


def wrapped_functions() -> Iterator[tuple[str, Hook]]:
    """Every wrapper that is on a torch function now, with the function's name."""
    for handle in _ON:
        yield handle.function, handle.wrapper
