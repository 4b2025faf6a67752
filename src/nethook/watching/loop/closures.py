"""The closure that a step of an optimizer is called with, which computes the gradients it uses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nethook.hooks.modes import quiet
from nethook.watching.fail_open import Guard


def closure_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
    """The closure that a step was called with, if any."""
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    return closure if callable(closure) else None


def with_closure(
    args: tuple[Any, ...], kwargs: dict[str, Any], closure: Callable[[], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with another closure."""
    if "closure" in kwargs:
        return args, {**kwargs, "closure": closure}
    return (args[0], closure, *args[2:]), kwargs


def read_after(
    closure: Callable[[], Any],
    read: Callable[[], None],
    guard: Guard,
    raised: Callable[[BaseException], None],
) -> Callable[[], Any]:
    """The closure, after which the gradients are read that the step will use.

    Arguments:
        closure: the script's.
        read: is called after each time that it has returned, while watching goes on.
        guard: keeps what `read` raises.
        raised: is told what the closure itself has raised.
    """

    @functools.wraps(closure)
    def seen(*args: Any, **kwargs: Any) -> Any:
        try:
            result = closure(*args, **kwargs)
        except BaseException as error:
            raised(error)
            raise
        if guard.alive:
            try:
                with quiet():
                    read()
            except Exception as error:
                guard.failed("the closure of a step", error, None)
        return result

    return seen
