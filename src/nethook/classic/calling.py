"""Calling a function with those of several arguments that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nethook.editing.calling import POSITIONAL, signature_of


def invoke_with_optional_args(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls `fn` with as many of the arguments as it takes.

        nethook.invoke_with_optional_args(lambda output: output * 2, output=y, layer="fc1")

    A parameter is given the keyword argument of its name; the parameters left over are given
    `args` in order, then the keyword arguments that nobody named, in order. This also concerns
    parameters with a default: one that must keep it belongs behind a `*`. `**kw` takes every
    keyword argument that is left; without it, `*a` takes them by position. A `nn.Module`, and a
    builtin that does not tell its parameters, is given the first argument alone.

    Raises:
        TypeError: where a parameter without a default is left without an argument.
    """
    return OptionalArguments(fn)(args, kwargs)


class OptionalArguments:
    """How one function wants to be called: looked up once, used at every call."""

    __slots__ = ("_fn", "_names", "_only_named", "_required", "_rest", "_rest_named")

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        parameters = signature_of(fn)
        # None: nothing is known, so it is given the first argument alone.
        self._names: list[str] | None = None
        self._required: set[str] = set()
        self._only_named: set[str] = set()
        self._rest = self._rest_named = False
        if parameters is not None:
            self._names = [p.name for p in parameters if p.kind in POSITIONAL]
            self._required = {p.name for p in parameters if p.default is p.empty}
            self._only_named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
            self._rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
            self._rest_named = any(p.kind is p.VAR_KEYWORD for p in parameters)

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Calls the function with those of the arguments that it takes."""
        if self._names is None:
            return self._fn(*args[:1]) if args else self._fn(*list(kwargs.values())[:1])
        by_name = {name: kwargs[name] for name in self._names if name in kwargs}
        named = {name: kwargs[name] for name in self._only_named if name in kwargs}
        positional = list(args)
        left = {k: v for k, v in kwargs.items() if k not in by_name and k not in named}
        given: list[Any] = []
        for position, name in enumerate(self._names):
            if name in by_name:
                given.append(by_name[name])
            elif positional:
                given.append(positional.pop(0))
            elif left:
                given.append(left.pop(next(iter(left))))
            else:
                return self._with_too_few(position, given, by_name, named, left)
        if self._rest:
            # A function of nothing but `*a, **kw` is given the first argument by position.
            first = [] if given or positional or not left else [left.pop(next(iter(left)))]
            given += positional + first
            if not self._rest_named:
                given += left.values()
        return self._fn(*given, **named, **(left if self._rest_named else {}))

    def _with_too_few(
        self, position: int, given: list[Any], by_name: Mapping[str, Any],
        named: Mapping[str, Any], left: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """Calls the function where some parameters must be left at their defaults."""
        assert self._names is not None
        behind = {name: by_name[name] for name in self._names[position:] if name in by_name}
        missing = [n for n in self._names[position:] if n not in behind and n in self._required]
        if missing:
            name = getattr(self._fn, "__name__", type(self._fn).__name__)
            raise TypeError(f"{name}() cannot be passed {', '.join(missing)}.")
        rest = left if self._rest_named else {}
        return self._fn(*given, **behind, **named, **rest)
