"""Doing our own reading without modes and tensor subclasses of the user's noticing.

A `TorchFunctionMode`, a `TorchDispatchMode` or a tensor subclass sees every torch call that is
made while it is active, also those of a hook. It may count, log or change them; then an observer
would change the run. Inside `quiet()` they see nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch

from nethook.torch_private import (
    dispatch_modes,
    function_modes,
    set_grad,
    without_dispatch_modes,
    without_function_overrides,
)

_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
_grad_is_on = torch.is_grad_enabled
_P = ParamSpec("_P")
_R = TypeVar("_R")


def modes_are_active() -> bool:
    """Whether a mode of the user's would see a torch call made now."""
    return bool(function_modes() or dispatch_modes())


def unnoticed(make: Callable[[torch.Tensor], Any], tensor: torch.Tensor) -> Any:
    """`make(tensor)`, seen by no mode and no subclass; what it makes is of the same class."""
    with quiet():
        made = make(tensor)
        cls = type(tensor)
        # Without its own `__torch_function__` a subclass turns into a plain tensor.
        return made.as_subclass(cls) if type(made) is torch.Tensor and cls not in _PLAIN else made


def quiet() -> AbstractContextManager[Any]:
    """A block whose torch calls are seen by no mode and no tensor subclass of the user's.

    Nearly always it is an object of torch's own that is written in C: a signal that raises comes
    before the block or after it, and never leaves torch half-way in between.
    """
    # Taking dispatch modes off and putting them back is slow, and they are rare.
    return _WithoutDispatchModes() if dispatch_modes() else without_function_overrides()


class _WithoutDispatchModes(AbstractContextManager[None]):
    __slots__ = ("_dispatch", "_function")

    def __enter__(self) -> None:
        self._function = without_function_overrides()
        self._function.__enter__()
        self._dispatch = without_dispatch_modes()
        self._dispatch.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._dispatch.__exit__(kind, error, traceback)
        self._function.__exit__(kind, error, traceback)


def unrecorded(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, run in a quiet block that autograd does not record either.

    No context manager, for a signal that raises may come as the first thing in a `__exit__` that is
    written in Python; then gradients would stay off for the script. A `finally` always runs.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with quiet():
            was_on = _grad_is_on()
            try:
                set_grad(False)
                return function(*args, **kwargs)
            finally:
                set_grad(was_on)

    return call
