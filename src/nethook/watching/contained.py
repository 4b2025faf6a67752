"""A part of watching that fails alone: the loss record and the flight recorder."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from nethook.hooks.stack import raised_by_signal

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Contained(Protocol):
    """Something with methods that are contained."""

    off: bool
    part: str
    _watching: Any

    def turn_off(self) -> None:
        """It does nothing from now on, and holds nothing."""


_T = TypeVar("_T", bound=Contained)


def contained(
    method: Callable[Concatenate[_T, _P], _R],
) -> Callable[Concatenate[_T, _P], _R | None]:
    """A method that returns None once its part is off; an error turns it off and is told.

    Without this an error in how a loss is described would end the counting of backward passes.
    """

    @functools.wraps(method)
    def call(self: _T, /, *args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        if self.off:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            if raised_by_signal(error):
                raise
            self.turn_off()
            self._watching.guard.failed(self.part, error, self.turn_off)
            return None

    return call
