"""Seeing every function of torch that a thread calls, from one moment to another.

The modes of `mode` belong to the calls of modules. This one belongs to nobody: it is put on when a
model has returned, say, and taken off when the backward pass begins. It may be told to end while a
function runs that it has handed on (`loss.backward()` is one): torch puts it back on the stack
after that function. So ending is two things: `stop`, after which nothing is told, and `remove`,
which takes it off the stack if it can, and may be called again.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from nethook.hooks.ops.mode_stack import is_on_stack, put_below, take_off
from nethook.hooks.ops.warned import call_from_above

Run = Callable[[], Any]
"""Calls the function, once."""
Seen = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], Run], Any]
"""`seen(function, args, kwargs, run)`: returns what `run()` does. Raises nothing of its own."""

_is_traced = torch.compiler.is_dynamo_compiling


class EveryCall(TorchFunctionMode):
    """A handle: `seen` is told of every function of torch that this thread calls.

        calls = EveryCall(seen)
        calls.put_on()
        calls.remove()              # any number of times

    While `seen` runs the mode is off: what it calls is not seen.
    """

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self._seen: Seen | None = seen
        self._thread = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Tells of a call, and makes it."""
        named = {} if kwargs is None else kwargs
        seen = self._seen
        if seen is None or _is_traced():
            return func(*args, **named)
        mode = EveryCall.__torch_function__.__code__
        return seen(func, args, named, lambda: call_from_above(func, args, named, mode))

    @property
    def on(self) -> bool:
        """Whether calls are told."""
        return self._thread != 0 and self._seen is not None

    def put_on(self) -> None:
        """Sees the calls of this thread from now on, below the modes of the script."""
        self._thread = get_ident()
        put_below(self)

    def stop(self) -> None:
        """Tells nothing any more; what it held is let go."""
        self._seen = None

    def remove(self) -> bool:
        """Takes the mode off; whether it is off now. Of another thread's it is off, in effect."""
        self.stop()
        if self._thread == get_ident() and is_on_stack(self):
            take_off(self)
            self._thread = 0
        return self._thread == 0
