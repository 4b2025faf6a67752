"""A watch of a model that several threads call: whose calls are followed.

A watch follows one thread: the one that opened it or, where the training runs in another, the one
that first calls the model with gradients. With `threads="all"` it follows all of them; then depth
and phase of calls, and steps under way, are a matter of each thread, and what is measured is
measured one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock, get_ident, local
from typing import Any

import torch
from torch import nn

from nethook.hooks.hook import Owner
from nethook.runs import names
from nethook.stats.rows import Slot
from nethook.watching.clock.calls import Calls
from nethook.watching.clock.turns import Turns
from nethook.watching.hooks.root_hooks import RootBegins, RootEnds
from nethook.watching.hooks.step_hooks import StepBegins, StepEnds
from nethook.watching.loop.optimizers import Optimizers
from nethook.watching.loop.track import Track
from nethook.watching.measuring.taps import GradTap, Layers, OutputTap
from nethook.watching.session import Session

_ONE_AT_A_TIME = RLock()


class SessionOfThreads(Session):
    """A watch of all threads."""

    lock = _ONE_AT_A_TIME
    locked = True

    def _put_off(self, step: int) -> bool:
        """Every step is ended by itself: the next may be under way in another thread."""
        return False


class CallsOfThreads(Calls):
    """Calls of each thread."""

    def __init__(self) -> None:
        self._here = local()
        super().__init__()

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


class TurnsOfThreads(Turns):
    """The turns of optimizers of which two may step at once, neither inside the other."""

    def __init__(self) -> None:
        self._here = local()
        super().__init__()

    @property
    def inside(self) -> int:
        """Steps under way in this thread, one inside the other."""
        return getattr(self._here, "inside", 0)

    @inside.setter
    def inside(self, inside: int) -> None:
        self._here.inside = inside

    @property
    def begun(self) -> int | None:
        """Whose step is under way in this thread, the outermost."""
        return getattr(self._here, "begun", None)

    @begun.setter
    def begun(self, begun: int | None) -> None:
        self._here.begun = begun

    @property
    def thread(self) -> int:
        """This thread."""
        return get_ident()

    @thread.setter
    def thread(self, thread: int) -> None:
        """Nothing: it is this one."""


class OptimizersOfThreads(Optimizers):
    """The optimizers of a watch of all threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._threads: dict[int, int] = {}  # id of an optimizer -> the thread that it steps in
        super().__init__(*args, **kwargs)

    def step_begins(self, track: Track, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step, in this thread."""
        self._threads[id(optimizer)] = get_ident()
        super().step_begins(track, optimizer)

    def backward_begins(self, first: bool, tracks: Iterable[Track] | None = None) -> None:
        """Looks at gradients of this thread alone.

        A pass of another thread may be writing its own, without the interpreter: to read these
        meanwhile would break the memory of the process.
        """
        here = get_ident()
        mine = [track for key, track in self.tracks.items() if self._threads.get(key) == here]
        super().backward_begins(first, mine)


class SharedStepBegins(StepBegins):
    """Before a step of an optimizer, one thread after the other."""

    __slots__ = ()

    def __call__(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Reads weights and gradients."""
        with _ONE_AT_A_TIME:
            return super().__call__(optimizer, args, kwargs)


class SharedStepEnds(StepEnds):
    """After a step of an optimizer, one thread after the other."""

    __slots__ = ()

    def __call__(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Reads updates, and ends the step."""
        with _ONE_AT_A_TIME:
            super().__call__(optimizer, args, kwargs)


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

    def grad_tap(self, owner: Owner, address: str, layers: Layers, slot: Slot) -> GradTap:
        """The tap on the gradient of what the module returns."""
        return SharedGradTap(owner, address, layers, slot)

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
    session.journal.note_event(names.THREAD, text)
    return text
