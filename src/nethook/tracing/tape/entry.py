"""One call as the taps write it down; `calls` is how it is read."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, get_ident, local
from typing import Any, Generic, NamedTuple, TypeVar

from torch import nn

from nethook.addresses.nested import map_tensors
from nethook.hooks.autograd.gradients import Sink
from nethook.hooks.hook import Owner
from nethook.hooks.ops.consumer import Met
from nethook.tracing.generation import Given, note, number
from nethook.tracing.keep import read_value
from nethook.tracing.options import Options

_T = TypeVar("_T")


class Entry(NamedTuple):
    """What is known of one call. Taps may leave out fields at the end."""

    forward: int | None
    output: Any
    inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    grads: Gradients | None = None
    input_grads: Gradients | None = None
    returned: bool = True
    nodes: Nodes | None = None


class Nodes(NamedTuple):
    """The autograd nodes that made an output, in its outline, and the stretch of the call.

    `begin` and `end` are numbers of nodes (see `hooks.nodes`); `thread` counted them.
    """

    made: Any  # the output with a HeldNode in place of each tensor, or None where it has none
    begin: int
    end: int
    thread: int


class Stack(Generic[_T]):
    """What has begun and not ended, the innermost last: of each thread by itself."""

    __slots__ = ("_of_threads",)

    def __init__(self) -> None:
        self._of_threads: dict[int, list[_T]] = {}

    def append(self, begun: _T) -> None:
        """A call begins in this thread."""
        self._of_threads.setdefault(get_ident(), []).append(begun)

    def pop(self) -> _T:
        """The innermost of this thread has ended."""
        return self._of_threads[get_ident()].pop()

    def __bool__(self) -> bool:
        return bool(self._of_threads.get(get_ident()))

    def take(self, *, every: bool = False) -> list[_T]:
        """All of this thread, or of every thread; they are forgotten here."""
        of_threads = self._of_threads
        keys = list(of_threads) if every else [get_ident()]
        return [each for key in keys for each in of_threads.pop(key, [])]


class Gradients(NamedTuple):
    """Where gradients arrive, and the outline of the value that they belong to."""

    sink: Sink
    outline: Any

    def passes(self) -> list[Any]:
        """For each backward pass, a value of that outline with the gradients in it."""
        return [_fill(self.outline, arrived) for arrived in self.sink.passes.values()]


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

    def steps(self) -> list[int]:
        """For each forward, its number after the prompt that it belongs to; 0 for a prompt."""
        return number(self.given)

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


class _Place:
    """Stands for a tensor in the outline of a nested value."""

    def __repr__(self) -> str:
        return "<tensor>"


_PLACE = _Place()


def outline(value: Any) -> Any:
    """A nested value with places for gradients instead of its tensors, and nothing else in it."""
    return map_tensors(lambda _: _PLACE, value, lambda _: None, fresh=True, attributes="drop")


def _fill(outline: Any, arrived: dict[int, Any]) -> Any:
    numbers = iter(range(len(arrived) and 1 + max(arrived)))

    def put(value: Any) -> Any:
        if value is not _PLACE:
            return value
        return read_value(arrived.get(next(numbers, -1)), "a gradient")

    return map_tensors(put, outline, put)
