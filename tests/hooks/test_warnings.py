"""A warning names the caller of a wrapped function, and is shown as often as without nethook."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.warnings import hide_from_warnings, warnings_stay_shown
from nethook.hooks.wrapped import WrappedFunction


def warn(level: int) -> None:
    """Stands for a function of torch's."""
    warnings.warn("look up", UserWarning, stacklevel=level)


class Through(Hook):
    __slots__ = ()

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_line_is_the_same_with_and_without_a_wrapper(level: int) -> None:
    module = sys.modules[__name__]

    def line() -> tuple[str, int]:
        with pytest.warns(UserWarning, match="look up") as caught:
            module.warn(level)
        return caught[0].filename, caught[0].lineno

    found = []
    for wrapped in (False, True):
        handle = WrappedFunction(__name__, "warn", Through(Owner("test"), "")) if wrapped else None
        found.append(line())
        if handle is not None:
            handle.remove()
    assert found[0] == found[1]


def test_a_function_is_marked_once_and_only_functions_are() -> None:
    def function() -> None: ...

    hide_from_warnings(function)
    name = function.__code__.co_filename
    hide_from_warnings(function)
    hide_from_warnings(len)
    assert function.__code__.co_filename == name
    assert name.startswith(__file__)


def test_what_was_shown_is_not_shown_again() -> None:
    def shown(between: Callable[[], None]) -> int:
        registry: dict[Any, Any] = {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(2):
                warnings.warn_explicit("once", UserWarning, "train.py", 1, registry=registry)
                between()
        return len(caught)

    def change() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("not shown", UserWarning, stacklevel=1)

    def change_unnoticed() -> None:
        with warnings_stay_shown():
            change()

    assert shown(change) == 2, "Python forgets: what the function is for"
    assert shown(change_unnoticed) == 1
    assert shown(change) == 2, "what it replaced is back"
