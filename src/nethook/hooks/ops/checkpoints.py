"""Operations that a checkpoint computes again have the addresses they had the first time.

A checkpointed block need not be a module: `checkpoint(lambda h: F.relu(self.fc(h)), h)` computes
operations of the module around it again, inside the backward pass, when that module does not run.
So the function that a checkpoint is given is wrapped while operations are watched, and run again in
the same place, from the same counts. An edit that was not applied again would give wrong gradients.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.ops.consumer import ModuleCall, OpWatcher, Place
from nethook.hooks.ops.mode import Running, mode_of_this_thread, unseen
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import CHECKPOINT_GENERATOR

_CHECKPOINT = "torch.utils.checkpoint"


def follow_checkpoints(watcher: OpWatcher, hooks: Attachment) -> None:
    """Lets a watcher know operations again that a checkpoint computes again."""
    owner = hooks.owner
    generator, function = _Checkpoint(owner, watcher), _ReentrantCheckpoint(owner, watcher)
    hooks.add(WrappedFunction(_CHECKPOINT, CHECKPOINT_GENERATOR, generator))
    hooks.add(WrappedFunction(f"{_CHECKPOINT}.CheckpointFunction", "forward", function))


class _Checkpoint(Hook):
    """Around the function that remembers what a checkpoint has to run again."""

    __slots__ = ("_watcher",)

    def __init__(self, owner: Owner, watcher: OpWatcher) -> None:
        super().__init__(owner, _CHECKPOINT)
        self._watcher = watcher

    def __call__(self, call: Any, function: Callable[..., Any], *rest: Any, **named: Any) -> Any:
        """Hands on a function that finds its way back."""
        again = self.again(function, done=True)
        made = call(again, *rest, **named)
        return made if again is function else _set_up(made)

    def again(self, function: Callable[..., Any], *, done: bool) -> Callable[..., Any]:
        """The function, to be run again where it runs now; `done` if it is not run first."""
        running = mode_of_this_thread().find(self._watcher)
        if running is None or not running.calls:
            return function
        call = running.calls[-1]
        return _Again(function, self._watcher, call.place, dict(call.counts), done=done)


def _set_up(checkpoint: Iterator[None]) -> Iterator[None]:
    """A checkpoint that prepares itself unseen: torch 2.8 to 2.11 make a tensor of their own."""
    with unseen():
        next(checkpoint)
    yield
    yield from checkpoint


class _ReentrantCheckpoint(_Checkpoint):
    """Around the first pass of a reentrant checkpoint."""

    __slots__ = ()

    def __call__(  # type: ignore[override]  # what it wraps takes one argument more
        self, call: Any, ctx: Any, function: Callable[..., Any], *rest: Any
    ) -> Any:
        """Hands on a function that finds its way back."""
        return call(ctx, self.again(function, done=False), *rest)


class _Again:
    """A function that runs, from its second time on, as a part of a module's call."""

    __slots__ = ("_counts", "_done", "_function", "_place", "_watcher")

    def __init__(
        self, function: Callable[..., Any], watcher: OpWatcher, place: Place,
        counts: dict[str, int], *, done: bool,
    ) -> None:  # fmt: skip
        self._function = function
        self._watcher = watcher
        self._place = place
        self._counts = counts
        self._done = done

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._done or self._watcher.off:
            self._done = True
            return self._function(*args, **kwargs)
        running = Running(self._watcher, sys._getframe())
        running.calls.append(ModuleCall(self._place, dict(self._counts)))
        with mode_of_this_thread().again(running):
            return self._function(*args, **kwargs)
