"""A watch of a model that several threads call: whose calls are followed.

A watch follows one thread: the one that opened it or, where the training runs in another, the one
that first calls the model with gradients. With `threads="all"` it follows all of them; then depth
and phase of calls are a matter of each thread, and what is measured is measured one at a time.
"""

from __future__ import annotations

from threading import RLock, local
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from nethook.hooks.hook import Owner
from nethook.runs import names
from nethook.watching.session import Session
from nethook.watching.taps import GradTap, OutputTap, RootBegins, RootEnds

if TYPE_CHECKING:
    from nethook.stats.rows import Slot

_ONE_AT_A_TIME = RLock()


class SessionOfThreads(Session):
    """A watch of all threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._here = local()
        super().__init__(*args, **kwargs)
        self.lock = _ONE_AT_A_TIME
        self.locked = True

    @property
    def called(self) -> bool:
        """Whether this thread has called anything that is watched since a step of its ended."""
        return getattr(self._here, "called", False)

    @called.setter
    def called(self, called: bool) -> None:
        self._here.called = called

    @property
    def depth(self) -> int:
        """Calls of watched models under way in this thread, one inside the other."""
        return getattr(self._here, "depth", 0)

    @depth.setter
    def depth(self, depth: int) -> None:
        self._here.depth = depth

    @property
    def training(self) -> bool:
        """Whether the outermost call of this thread has gradients."""
        return getattr(self._here, "training", True)

    @training.setter
    def training(self, training: bool) -> None:
        self._here.training = training


class SharedGradTap(GradTap):
    """A tap on a gradient, one thread after the other."""

    __slots__ = ()

    def __call__(self, grad: torch.Tensor | None) -> None:
        """Measures a gradient."""
        if torch.compiler.is_compiling():  # a graph has no locks in it
            super().__call__(grad)
            return
        with _ONE_AT_A_TIME:
            super().__call__(grad)


class SharedOutputTap(OutputTap):
    """A tap on a module, one thread after the other."""

    __slots__ = ()

    def grad_tap(self, owner: Owner, address: str, session: Session, slot: Slot) -> GradTap:
        """The tap on the gradient of what the module returns."""
        return SharedGradTap(owner, address, session, slot)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """Measures a call."""
        if torch.compiler.is_compiling():  # a graph has no locks in it
            return super().__call__(module, args, output)
        with _ONE_AT_A_TIME:
            return super().__call__(module, args, output)


class SharedRootBegins(RootBegins):
    """Before a watched model is called, one thread after the other."""

    __slots__ = ()

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        """Notes that a call begins."""
        if torch.compiler.is_compiling():  # a graph has no locks in it
            super().__call__(module, args, kwargs)
            return
        with _ONE_AT_A_TIME:
            super().__call__(module, args, kwargs)


class SharedRootEnds(RootEnds):
    """After a watched model was called, one thread after the other."""

    __slots__ = ()

    def __call__(self, module: nn.Module, *given: Any) -> None:
        """Notes that a call has ended."""
        if torch.compiler.is_compiling():  # a graph has no locks in it
            super().__call__(module, *given)
            return
        with _ONE_AT_A_TIME:
            super().__call__(module, *given)


def tell_others(session: Session, owner: Owner) -> str:
    """What to say at the end of calls that other threads have made: "" if there were none."""
    if not owner.others:
        return ""
    text = (
        "another thread called the model while it was watched; only one thread is followed: "
        'nethook.watch(…, threads="all") follows all'
    )
    session.note_event(names.THREAD, text)
    return text
