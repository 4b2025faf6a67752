"""Seeing comparisons of tensors: `answers == labels`, `answers.eq(labels)`, `torch.eq`, `!=`.

Not seen is what compares anything but tensors: numpy's arrays, lists, numbers of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import modes_are_active
from nethook.hooks.process.loss_functions import list_functions
from nethook.hooks.wrapped import WrappedFunction

_COMPARE: Final = ("eq", "ne")

Seen = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]
"""`seen(left, right, result)`."""


class Comparisons:
    """A handle: `seen` is told of every comparison of two tensors.

        comparisons = Comparisons(owner, seen)
        comparisons.put_on()                 # they are on now; it takes about 10 µs
        comparisons.remove()                 # and off; any number of times

    What a mode of the user's or a compiler sees is passed on and not told.
    """

    def __init__(self, owner: Owner, seen: Seen) -> None:
        list_functions()
        places: list[tuple[str | type, str]] = [("torch", name) for name in _COMPARE]
        places += [(torch.Tensor, name) for name in _COMPARE]
        places += [(torch.Tensor, f"__{name}__") for name in _COMPARE]
        self._handles = [
            WrappedFunction(holder, name, _OnComparison(owner, name, seen), on=False)
            for holder, name in places
        ]

    def put_on(self) -> None:
        """Puts the wrappers on."""
        for handle in self._handles:
            handle.put_on()

    def remove(self) -> None:
        """Takes the wrappers off; `put_on` can put them on again."""
        for handle in self._handles:
            handle.remove()


class _OnComparison(Hook):
    __slots__ = ("_seen",)

    def __init__(self, owner: Owner, address: str, seen: Seen) -> None:
        super().__init__(owner, address)
        self._seen = seen

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if (
            len(args) == 2
            and type(args[0]) is type(args[1]) is type(result) is torch.Tensor
            and self.owner.alive
            and not modes_are_active()
        ):
            self._seen(args[0], args[1], result)
        return result
