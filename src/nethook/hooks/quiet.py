"""Doing our own reading without modes and tensor subclasses of the user's noticing.

A `TorchFunctionMode`, a `TorchDispatchMode` or a tensor subclass sees every torch call that is
made while it is active, also those of a hook. It may count, log or change them; then an observer
would change the run. Inside `quiet()` they see nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

import torch
from torch.utils._python_dispatch import _disable_current_modes

_function_modes = torch._C._len_torch_function_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack


def modes_are_active() -> bool:
    """Whether a mode of the user's would see a torch call made now."""
    return bool(_function_modes() or _dispatch_modes())


class quiet(AbstractContextManager[None]):  # noqa: N801  it is used like a function
    """A block whose torch calls are seen by no mode and no tensor subclass of the user's."""

    __slots__ = ("_dispatch", "_function")

    def __enter__(self) -> None:
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
        self._function.__exit__(kind, error, traceback)
