"""A keyword that a function does not have: which one was probably meant.

    @suggests
    def trace(model, *patterns, grads=False): ...

    trace(model, grad=True)    # … unexpected keyword argument 'grad'. Did you mean 'grads'?

Python does this by itself from 3.13 on, in the same words, where the difference is small.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


_MEANT: Final = "Did you mean"


def suggests(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with a better error for a keyword that it does not have."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            inside = error.__traceback__ is None or error.__traceback__.tb_next is not None
            meant = "" if inside else _closest(function, kwargs)
            said = str(error)
            if not meant or "unexpected keyword argument" not in said or _MEANT in said:
                raise
            raise TypeError(f"{said}. {_MEANT} {meant!r}?") from None

    return called


def _closest(function: Callable[..., object], given: dict[str, object]) -> str:
    """The parameter that is closest to the first keyword that is none."""
    from difflib import get_close_matches

    names = list(inspect.signature(function).parameters)
    unknown = next((name for name in given if name not in names), "")
    return next(iter(get_close_matches(unknown, names, n=1)), "")
