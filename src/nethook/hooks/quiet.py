"""Doing our own reading without modes and tensor subclasses of the user's noticing.

A `TorchFunctionMode`, a `TorchDispatchMode` or a tensor subclass sees every torch call that is
made while it is active, also those of a hook. It may count, log or change them; then an observer
would change the run. Inside `quiet()` they see nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
_function_modes = torch._C._len_torch_function_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack
_all_is_quiet = torch._C._is_torch_function_all_disabled
_grad_is_on = torch.is_grad_enabled
_set_grad = torch._C._set_grad_enabled


def modes_are_active() -> bool:
    """Whether a mode of the user's would see a torch call made now."""
    return bool(_function_modes() or _dispatch_modes())


def unnoticed(make: Callable[[torch.Tensor], Any], tensor: torch.Tensor) -> Any:
    """`make(tensor)`, seen by no mode and no subclass; what it makes is of the same class."""
    with quiet():
        made = make(tensor)
        cls = type(tensor)
        # Without its own `__torch_function__` a subclass turns into a plain tensor.
        return made.as_subclass(cls) if type(made) is torch.Tensor and cls not in _PLAIN else made


class quiet(AbstractContextManager[None]):  # noqa: N801  it is used like a function
    """A block whose torch calls are seen by no mode and no tensor subclass of the user's."""

    __slots__ = ("_dispatch", "_function")

    def __enter__(self) -> None:
        self._function = None
        if not _all_is_quiet():  # else this is a block inside another
            self._function = torch._C.DisableTorchFunction()
            self._function.__enter__()
        # Taking dispatch modes off and putting them back is slow, and they are rare.
        self._dispatch = _disable_current_modes() if _dispatch_modes() else None
        if self._dispatch is not None:
            self._dispatch.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._dispatch is not None:
            self._dispatch.__exit__(kind, error, traceback)
        if self._function is not None:
            self._function.__exit__(kind, error, traceback)


class unrecorded(quiet):  # noqa: N801  it is used like a function
    """A quiet block that autograd does not record either."""

    __slots__ = ("_grad",)

    def __enter__(self) -> None:
        super().__enter__()
        self._grad = _grad_is_on()
        _set_grad(False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _set_grad(self._grad)
        super().__exit__(kind, error, traceback)
