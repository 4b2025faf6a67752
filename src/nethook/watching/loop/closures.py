"""The closure that a step of an optimizer is called with, which computes the gradients it uses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


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


def after_closure(
    closure: Callable[[], Any], then: Callable[[], None], failed: Callable[[BaseException], None]
) -> Callable[[], Any]:
    """The closure, and what is to be called after it has returned, or raised."""

    @functools.wraps(closure)
    def seen(*args: Any, **kwargs: Any) -> Any:
        try:
            result = closure(*args, **kwargs)
        except BaseException as error:
            failed(error)
            raise
        then()
        return result

    return seen
