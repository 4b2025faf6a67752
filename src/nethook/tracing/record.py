"""What a tape holds of one site: its calls, and of each call the values and gradients.

Values that cannot be read raise an error that says why, and what to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, overload

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors
from nethook.errors import NoGradientError, NotAskedError, NotRunError, SeveralCallsError
from nethook.hooks.gradients import Sink
from nethook.tracing.keep import held_tensors, read_value
from nethook.tracing.options import Options

Quantity = Literal["output", "input", "grad"]


class _Place:
    """Stands for a tensor in the outline of a nested value."""

    def __repr__(self) -> str:
        return "<tensor>"


_PLACE = _Place()


def outline(value: Any) -> Any:
    """A nested value with its tensors taken out, so that gradients can be put there."""
    return map_tensors(lambda _: _PLACE, value, lambda _: None)


class Entry(NamedTuple):
    """One call as the tap wrote it down; `Call` is how it is read."""

    forward: int | None
    output: Any
    inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    grads: Gradients | None = None
    input_grads: Gradients | None = None
    returned: bool = True


class Gradients(NamedTuple):
    """Where gradients arrive, and the outline of the value that they belong to."""

    sink: Sink
    outline: Any


class State:
    """What all records of a tape share: what was asked, and how the scope stands."""

    __slots__ = ("depth", "forward", "forwards", "options", "stopped_at")

    def __init__(self, options: Options) -> None:
        self.options = options
        self.forward: int | None = None  # the forward that runs now
        self.forwards = 0
        self.depth = 0  # how many calls of the model itself are under way: it may call itself
        self.stopped_at: str | None = None


class Call:
    """One call of a module: what went in, what came out, and the gradients of both."""

    __slots__ = ("_entry", "_record", "index")

    def __init__(self, record: Record, entry: Entry, index: int) -> None:
        self._record = record
        self._entry = entry
        self.index = index  # its number among all calls of the site, from 0

    @property
    def forward(self) -> int | None:
        """Which forward of the model it belongs to, from 0; None if it was called on its own."""
        return self._entry.forward

    @property
    def output(self) -> Any:
        """What the module returned."""
        if not self._entry.returned:
            raise NotRunError(
                f"{self._what} raised an exception before it returned; .args and .kwargs tell "
                "what it was called with."
            )
        return read_value(self._entry.output, f"the output of {self._what}")

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments, as they were before the call."""
        args: tuple[Any, ...] = read_value(self._inputs()[0], f"an input of {self._what}")
        return args

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments, as they were before the call."""
        kwargs: dict[str, Any] = read_value(self._inputs()[1], f"an input of {self._what}")
        return kwargs

    @property
    def input(self) -> Any:
        """The first argument, by position or else by name; all of them are in `args`, `kwargs`."""
        args, kwargs = self._inputs()
        if not args and not kwargs:
            raise NotRunError(f"{self._what} was called without arguments.")
        first = args[0] if args else next(iter(kwargs.values()))
        return read_value(first, f"the input of {self._what}")

    @property
    def grad(self) -> Any:
        """The gradient of the output, in its shape; None inside it where none arrived."""
        grads = self.grads
        if len(grads) > 1:
            raise SeveralCallsError(
                f"gradients of {self._what} arrived in {len(grads)} backward passes: read "
                ".grads[i], in the order of the passes."
            )
        return grads[0]

    @property
    def grads(self) -> list[Any]:
        """The gradients of the output, one for each backward pass that reached it."""
        if not self._record.state.options.grads:
            raise self._record.not_asked("gradients", "grads=True")
        return self._passes(self._entry.grads, "the output")

    @property
    def input_grads(self) -> Inputs:
        """The gradients of the inputs: `input_grads[0]` by position, `input_grads["x"]` by name.

        The gradient of an input counts every use of that tensor, in this module and elsewhere.
        """
        if not self._record.state.options.input_grads:
            raise self._record.not_asked("input gradients", "input_grads=True")
        passes = self._passes(self._entry.input_grads, "the inputs")
        if len(passes) > 1:
            raise SeveralCallsError(
                f"input gradients of {self._what} arrived in {len(passes)} backward passes. Run "
                "one backward pass a trace to tell them apart."
            )
        args, kwargs = passes[0]
        return Inputs(args, kwargs)

    def _inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not self._record.state.options.inputs:
            raise self._record.not_asked("inputs", "inputs=True")
        assert self._entry.inputs is not None
        return self._entry.inputs

    def _passes(self, grads: Gradients | None, of: str) -> list[Any]:
        if grads is None:
            raise NoGradientError(
                f"{of} of {self._what} did not require a gradient when it ran: it was under "
                "no_grad or inference_mode, or nothing before it requires one."
            )
        if grads.sink.lost:
            raise NoGradientError(
                f"{of} of {self._what} is a view that was written in place after the call, and "
                "torch drops the gradient there. Trace the module that made the tensor, or the "
                "one that writes to it."
            )
        if not grads.sink.passes:
            raise NoGradientError(
                f"no gradient has arrived at {of} of {self._what}: no backward pass has run "
                "through it yet, or the loss does not depend on it."
            )
        return [_fill(grads.outline, arrived) for arrived in grads.sink.passes.values()]

    @property
    def _what(self) -> str:
        only = self.index == 0 and self._record.total == 1
        return repr(self._record.address) + ("" if only else f" (call {self.index})")

    def __repr__(self) -> str:
        forward = "" if self.forward is None else f", forward {self.forward}"
        return f"<call {self.index} of {self._record.address!r}{forward}: {self.shape}>"

    @property
    def shape(self) -> str:
        """The shapes of the tensors in the output, as text."""
        return shapes(self._entry.output) if self._entry.returned else "raised"


class Calls(Sequence[Call]):
    """The calls of one site, over all forwards in the scope."""

    __slots__ = ("_record",)

    def __init__(self, record: Record) -> None:
        self._record = record

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        """The call (or calls) at an index, among those that were kept."""
        record = self._record
        dropped = record.total - len(record.entries)
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index] if -len(self) <= index < len(self) else None
        if at is None:
            if not record.entries:
                record.raise_not_run()
            raise IndexError(
                f"call {index} of {record.address!r} was asked for, and {len(self)} are kept"
                + (
                    f" of {record.total} (calls={record.state.options.calls!r})."
                    if dropped
                    else "."
                )
            )
        return Call(record, Entry(*record.entries[at]), dropped + at)

    def __len__(self) -> int:
        """How many calls are kept."""
        return len(self._record.entries)

    def __iter__(self) -> Iterator[Call]:
        return (self[at] for at in range(len(self)))

    def stack(self, dim: int = 0, *, of: Quantity = "output") -> Any:
        """The outputs (or inputs, or gradients) of all calls, stacked along a new dimension."""
        return self._join(torch.stack, dim, of)

    def cat(self, dim: int = 0, *, of: Quantity = "output") -> Any:
        """The outputs (or inputs, or gradients) of all calls, joined along a dimension."""
        return self._join(torch.cat, dim, of)

    def _join(self, join: Callable[..., torch.Tensor], dim: int, of: Quantity) -> Any:
        if not len(self):
            self._record.raise_not_run()
        values = [getattr(call, of) for call in self]
        columns = [held_tensors(value) for value in values]
        if len({len(column) for column in columns}) != 1:
            raise SeveralCallsError(
                f"the calls of {self._record.address!r} hold different numbers of tensors "
                f"({[len(column) for column in columns]}), so they cannot be joined: read "
                ".calls[i]."
            )
        rows = zip(*columns, strict=True)
        joined = iter([self._join_row(join, list(row), dim) for row in rows])
        return map_tensors(lambda _: next(joined), values[0])

    def _join_row(
        self, join: Callable[..., torch.Tensor], row: list[torch.Tensor], dim: int
    ) -> torch.Tensor:
        try:
            return join(row, dim)
        except (RuntimeError, IndexError) as error:
            found = sorted({str(tuple(tensor.shape)) for tensor in row})
            raise SeveralCallsError(
                f"the calls of {self._record.address!r} have shapes {', '.join(found)}, which "
                f"cannot be joined along dimension {dim} ({error}). Try .cat(dim=...), or read "
                ".calls[i]."
            ) from None

    def __repr__(self) -> str:
        return f"[{', '.join(repr(call) for call in self)}]"


class Record:
    """What a tape holds of one site.

    `output`, `input`, `args`, `kwargs`, `grad`, `grads`, `input_grads` and `forward` are those of
    the only call; where there were several they raise `SeveralCallsError`: read `.calls[i]` or
    `.last` then.
    """

    why: str | None = None  # why it may not be called although it is a part of the model
    skipped: str | None = None  # why a call of it was not recorded
    _counted = 0

    def __init__(self, state: State, address: str, names: Sequence[str], type_name: str) -> None:
        self.state = state
        self.address = address
        self.names = names
        self.type_name = type_name
        # As the taps write them: the fields of an Entry, without those at the end that are unset.
        self.entries: list[tuple[Any, ...]] | deque[tuple[Any, ...]] = []

    @property
    def total(self) -> int:
        """How many calls there were, those that were not kept included."""
        return max(self._counted, len(self.entries))

    def limit(self, most: int) -> Callable[[tuple[Any, ...]], None]:
        """Keeps only the latest calls from now on; returns what adds one."""
        self.entries = deque(maxlen=most)
        return self._add_counted

    def _add_counted(self, entry: tuple[Any, ...]) -> None:
        self._counted += 1
        self.entries.append(entry)

    def clear(self) -> None:
        """Forgets all calls."""
        self.entries.clear()
        self._counted = 0

    @property
    def calls(self) -> Calls:
        """All calls of the site that were kept, over all forwards in the scope."""
        return Calls(self)

    @property
    def last(self) -> Call:
        """The last call."""
        if not self.entries:
            self.raise_not_run()
        return self.calls[-1]

    @property
    def output(self) -> Any:
        """What the only call returned."""
        return self._only().output

    @property
    def input(self) -> Any:
        """The first argument of the only call."""
        return self._only().input

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments of the only call."""
        return self._only().args

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments of the only call."""
        return self._only().kwargs

    @property
    def grad(self) -> Any:
        """The gradient of the only call's output."""
        return self._only().grad

    @property
    def grads(self) -> list[Any]:
        """The gradients of the only call's output, one for each backward pass."""
        return self._only().grads

    @property
    def input_grads(self) -> Inputs:
        """The gradients of the only call's inputs."""
        return self._only().input_grads

    @property
    def forward(self) -> int | None:
        """The forward that the only call belongs to."""
        return self._only().forward

    def _only(self) -> Call:
        if self.total > 1:
            raise SeveralCallsError(
                f"{self.address!r} was called {self.total} times: read .calls[i] (i from 0), "
                ".last, or .calls.stack()."
            )
        return self.last

    def not_asked(self, what: str, option: str) -> NotAskedError:
        """The error for a quantity that the trace did not record."""
        return NotAskedError(
            f"the {what} of {self.address!r} were not recorded: trace with {option}."
        )

    def raise_not_run(self) -> NoReturn:
        """Says why there is no call to read."""
        name = repr(self.address)
        if self.skipped is not None:
            raise NotRunError(f"{name} was called, but {self.skipped}.")
        if self.state.stopped_at is not None:
            raise NotRunError(
                f"{name} was not reached: stop=True ended the forward after "
                f"{self.state.stopped_at!r}, because in an earlier forward of this model {name} "
                "did not run. Trace without stop=True, or ask for it on its own."
            )
        if self.why is not None:
            raise NotRunError(f"{name} has not been called: {self.why}")
        ran = (
            f"although the model ran {self.state.forwards} times in it: this forward does not "
            "call it, or calls its .forward(), or uses its parameters directly"
            if self.state.forwards
            else "nor has the model"
        )
        raise NotRunError(f"{name} has not been called in this scope, {ran}.")

    def __repr__(self) -> str:
        calls = "1 call" if self.total == 1 else f"{self.total} calls"
        shown = f", last {self.calls[-1].shape}" if self.entries else ""
        return f"<record {self.address!r} ({self.type_name}): {calls}{shown}>"


def shapes(value: Any) -> str:
    """The shapes of the tensors that a kept value holds, as text."""
    held = held_tensors(value)
    if not held:
        return "–"
    first = [str(tuple(tensor.shape)) for tensor in held[:2]]
    return ", ".join(first) + (f" and {len(held) - 2} more" if len(held) > 2 else "")


def _fill(outline: Any, arrived: dict[int, Any]) -> Any:
    numbers = iter(range(1 << 30))

    def put(value: Any) -> Any:
        if value is not _PLACE:
            return value
        return read_value(arrived.get(next(numbers)), "a gradient")

    return map_tensors(put, outline, put)
