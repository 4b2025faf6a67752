"""Seeing comparisons of tensors: `answers == labels`, `answers.eq(labels)`, `!=`, `answers.ne`.

Not seen is what compares anything but tensors: numpy's arrays, lists, numbers of Python. Nor are
`torch.eq` and `torch.ne`: `torch.jit.script` knows these two by their identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import modes_are_active
from nethook.hooks.process.loss_functions import list_functions
from nethook.hooks.wrapped import WrappedFunction, WrappedFunctions

_COMPARE: Final = ("eq", "ne")
_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)

Seen = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]
"""`seen(left, right, result)`."""


class Comparisons(WrappedFunctions):
    """A handle: `seen` is told of every comparison of two tensors.

        comparisons = Comparisons(owner, seen)
        comparisons.put_on()                 # they are on now; it takes about 10 µs
        comparisons.remove()                 # and off; any number of times

    Modes and tensor subclasses of the user's see the call as torch makes it, and it is not told.
    """

    def __init__(self, owner: Owner, seen: Seen) -> None:
        list_functions()
        super().__init__(
            WrappedFunction(torch.Tensor, name, _OnComparison(owner, name, seen, self), on=False)
            for name in (*_COMPARE, *(f"__{name}__" for name in _COMPARE))
        )


class _OnComparison(Hook):
    __slots__ = ("_all", "_seen")

    def __init__(self, owner: Owner, address: str, seen: Seen, all_of_them: Comparisons) -> None:
        super().__init__(owner, address)
        self._seen = seen
        self._all = all_of_them

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if modes_are_active() or any(
            isinstance(arg, torch.Tensor) and type(arg) not in _PLAIN for arg in args
        ):
            return self._stand_aside(function, *args, **kwargs)
        result = function(*args, **kwargs)
        if (
            len(args) == 2
            and type(args[0]) is type(args[1]) is type(result) is torch.Tensor
            and self.owner.alive
        ):
            self._seen(args[0], args[1], result)
        return result

    def _stand_aside(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """User code in the call may ask whether the function is `torch.Tensor.eq`."""
        self._all.remove()
        try:
            return function(*args, **kwargs)
        finally:
            if self.owner.alive:
                self._all.put_on()
