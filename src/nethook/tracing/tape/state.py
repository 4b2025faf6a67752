"""What all records of a tape share: what was asked for, and which forward runs."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, local
from typing import Any

from torch import nn

from nethook.hooks.hook import Owner
from nethook.hooks.ops.consumer import Met
from nethook.tracing.generation import Given, note, number
from nethook.tracing.options import Options


class State:
    """What all records of a tape share: what was asked, and how the scope stands."""

    __slots__ = (
        "depth", "forward", "forwards", "given", "met", "model", "options", "owner", "stopped_at",
    )  # fmt: skip

    def __init__(self, options: Options) -> None:
        self.options = options
        self.owner: Owner | None = None  # whose thread's calls are recorded
        # Weakly: a tape does not keep its model alive.
        self.model: Callable[[], nn.Module | None] = lambda: None
        self.forward: int | None = None  # the forward that runs now
        self.forwards = 0
        self.given: list[Given] = []  # for each forward, what tells a prompt from a decoding step
        self.depth = 0  # how many calls of the model itself are under way: it may call itself
        self.stopped_at: str | None = None
        self.met: Met | None = None  # what ran, where operations are traced

    def begin_forward(self, given: tuple[Any, ...]) -> None:
        """A forward of the model itself begins."""
        self.forward = self.forwards
        self.forwards += 1
        self.given.append(note(given[0], given[1] if len(given) > 1 else None))

    def steps(self) -> dict[int | None, int]:
        """The step of each forward: how far it is from its prompt, 0 for a prompt.

        A tape that was cleared in the middle of a forward no longer knows that forward.
        """
        return dict(enumerate(number(self.given)))

    def clear(self) -> None:
        """Forgets the forwards so far."""
        self.forwards = 0
        self.given.clear()


class StateOfThreads(State):
    """The state of a tape of every thread: which forward runs is a matter of each thread."""

    __slots__ = ("_here", "_lock")

    def __init__(self, options: Options) -> None:
        self._here = local()
        self._lock = Lock()
        super().__init__(options)

    @property
    def forward(self) -> int | None:
        """The forward that runs now in this thread."""
        return getattr(self._here, "forward", None)

    @forward.setter
    def forward(self, number: int | None) -> None:
        self._here.forward = number

    @property
    def depth(self) -> int:
        """How many calls of the model itself are under way in this thread."""
        return getattr(self._here, "depth", 0)

    @depth.setter
    def depth(self, depth: int) -> None:
        self._here.depth = depth

    def begin_forward(self, given: tuple[Any, ...]) -> None:
        """A forward of the model itself begins in this thread."""
        with self._lock:
            super().begin_forward(given)
