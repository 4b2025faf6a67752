"""One call as the taps write it down; `call` is how it is read."""

from __future__ import annotations

from threading import get_ident
from typing import Any, Generic, NamedTuple, TypeVar

from nethook.addresses.nested import map_tensors
from nethook.hooks.autograd.gradients import Sink
from nethook.tracing.keep import read_value

_T = TypeVar("_T")


class Entry(NamedTuple):
    """What is known of one call: it has begun, and has returned or will not.

    A record holds plain tuples of these fields, from which those at the end that are unset may be
    missing: where only outputs are asked for, building an `Entry` would be most of the cost.
    """

    forward: int | None
    output: Any
    # The keyword arguments are None of a call that began under a global hook and never returned.
    inputs: tuple[tuple[Any, ...], dict[str, Any] | None] | None = None
    grads: Gradients | None = None
    input_grads: Gradients | None = None
    returned: bool = True
    # With nodes=True: the output with a HeldNode in place of each tensor, or None where it has
    # none. The autograd nodes of the call have numbers from `begin` up to `end`, which each thread
    # counts for itself (see `hooks.autograd.nodes`).
    nodes: Any = None
    begin: int = 0
    end: int = 0
    thread: int = 0


class Gradients(NamedTuple):
    """Where gradients arrive, and the outline of the value that they belong to."""

    sink: Sink
    outline: Any

    def passes(self) -> list[Any]:
        """For each backward pass, a value of that outline with the gradients in it."""
        return [_fill(self.outline, arrived) for arrived in self.sink.passes.values()]


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
        threads = list(of_threads) if every else [get_ident()]
        return [begun for thread in threads for begun in of_threads.pop(thread, [])]


class _Placeholder:
    """Stands for a tensor in the outline of a nested value."""

    def __repr__(self) -> str:
        return "<tensor>"


_TENSOR = _Placeholder()


def outline(value: Any) -> Any:
    """A nested value with placeholders instead of its tensors, and nothing else in it."""
    return map_tensors(lambda _: _TENSOR, value, lambda _: None, fresh=True, attributes="drop")


def _fill(outline: Any, arrived: dict[int, Any]) -> Any:
    numbers = iter(range(len(arrived) and 1 + max(arrived)))

    def put(value: Any) -> Any:
        if value is not _TENSOR:
            return value
        return read_value(arrived.get(next(numbers, -1)), "a gradient")

    return map_tensors(put, outline, put)
