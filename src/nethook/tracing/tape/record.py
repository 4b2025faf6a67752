"""What a tape holds of one address: a module's or an operation's calls, a parameter's gradients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, overload

import torch

from nethook.addresses.nested import map_tensors
from nethook.addresses.op_addresses import OpPattern
from nethook.errors import NoGradientError, NotRunError, SeveralCallsError
from nethook.hooks.ops.missing import why_no_op
from nethook.hooks.threads import others_ran
from nethook.tracing.keep import held_tensors, read_value
from nethook.tracing.tape.call import Call, OneCall
from nethook.tracing.tape.entry import Entry
from nethook.tracing.tape.state import State

Quantity = Literal["output", "input", "grad"]


class OpName(NamedTuple):
    """What an operation is called: the `k`-th `name` in a call of a module."""

    modules: Sequence[str]  # the names of its module, its address first
    name: str
    k: int

    def is_meant_by(self, pattern: OpPattern) -> bool:
        """Whether a pattern means it."""
        return pattern.matches(self.name, self.k) and pattern.means_module(self.modules)


class Record(OneCall):
    """What a tape holds of one site: a module, or an operation inside one.

    `output`, `input`, `args`, `kwargs`, `grad`, `grads`, `input_grads`, `node` and `forward` are
    those of the only call; where there were several they raise `SeveralCallsError`: read
    `.calls[i]` or `.last` then.
    """

    __slots__ = (
        "__weakref__", "_counted", "entries", "names", "op", "skipped", "type_name", "why",
    )  # fmt: skip

    def __init__(
        self, state: State, address: str, names: Sequence[str], type_name: str,
        op: OpName | None = None,
    ) -> None:  # fmt: skip
        self.state = state
        self.address = address
        self.names = names
        self.type_name = type_name
        self.op = op  # None for a module
        self.why: str | None = None  # why it may not be called although the model has it
        self.skipped: str | None = None  # why a call of it was not recorded
        self._counted = 0
        # As the taps write them: the fields of an Entry, without those at the end that are unset.
        self.entries: list[tuple[Any, ...]] | deque[tuple[Any, ...]] = []

    @property
    def calls(self) -> Calls:
        """All calls of the site that were kept, over all forwards in the scope."""
        return Calls(self)

    @property
    def last(self) -> Call:
        """The last call."""
        if not self.entries:
            self.raise_not_run()
        return self.call_at(len(self.entries) - 1)

    @property
    def _entry(self) -> Entry:
        if self.total > 1:
            raise SeveralCallsError(
                f"{self.address!r} was called {self.total} times: read .calls[i] (i from 0), "
                ".last, or .calls.stack()."
            )
        if not self.entries:
            self.raise_not_run()
        return Entry(*self.entries[-1])

    @property
    def total(self) -> int:
        """How many calls there were, those that were not kept included."""
        # Taps that keep all calls add to `entries` alone, which is the quickest way; only those
        # that keep the latest few count as well.
        return max(self._counted, len(self.entries))

    def call_at(self, position: int) -> Call:
        """One of the calls that were kept."""
        index = self.total - len(self.entries) + position
        only = self.total == 1
        return Call(self.state, self.address, self.entries[position], index, only=only)

    def writer(self, most: int | None) -> Callable[[tuple[Any, ...]], None]:
        """What a tap calls to add a call; only the latest ones are kept, or all for None."""
        if most is None:
            return self.entries.append
        self.entries = deque(maxlen=most)
        return self._add_counted

    def _add_counted(self, entry: tuple[Any, ...]) -> None:
        self._counted += 1
        self.entries.append(entry)

    def clear(self) -> None:
        """Forgets all calls."""
        self.entries.clear()
        self._counted = 0

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
        if self.op is not None:
            why = why_no_op(self.state.met, self.op.modules[0], self.op.name)
            raise NotRunError(f"{name} has not run in this scope: {why}")
        if self.why is not None:
            raise NotRunError(f"{name} has not been called: {self.why}")
        ran = (
            f"although the model ran {self.state.forwards} times in it: this forward does not "
            "call it, or calls its .forward(), or uses its parameters directly"
            if self.state.forwards
            else "nor has the model"
        )
        owner = self.state.owner
        others = "" if owner is None else others_ran(owner, "trace")
        raise NotRunError(f"{name} has not been called in this scope, {ran}.{others}")

    def __repr__(self) -> str:
        calls = "1 call" if self.total == 1 else f"{self.total} calls"
        shown = f", last {self.last.shape}" if self.entries else ""
        return f"<record {self.address!r} ({self.type_name}): {calls}{shown}>"


class Calls(Sequence[Call]):
    """The calls of one site, over all forwards in the scope, or some of them."""

    __slots__ = ("_positions", "_record")

    def __init__(self, record: Record, positions: list[int] | None = None) -> None:
        self._record = record
        self._positions = positions  # which of the calls that were kept; None for all

    @property
    def prompt(self) -> Calls:
        """The calls in which a generation read its prompt."""
        return self._with_step(lambda step: step == 0)

    @property
    def decode(self) -> Calls:
        """The calls in which a generation made one more token, in order."""
        return self._with_step(lambda step: step > 0)

    def _with_step(self, wanted: Callable[[int], bool]) -> Calls:
        steps = self._record.state.steps()
        entries = self._record.entries
        return Calls(
            self._record,
            [
                position
                for position in self._all()
                if (step := steps.get(entries[position][0])) is not None and wanted(step)
            ],
        )

    def _all(self) -> Sequence[int]:
        return range(len(self._record.entries)) if self._positions is None else self._positions

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        """The call (or calls) at an index, among those that were kept."""
        record = self._record
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            if not record.entries:
                record.raise_not_run()
            among = "are kept" if self._positions is None else "are here"
            dropped = record.total > len(record.entries)
            raise IndexError(
                f"call {index} of {record.address!r} was asked for, and {len(self)} {among}"
                + (
                    f" of {record.total} (calls={record.state.options.calls!r})."
                    if dropped
                    else "."
                )
            )
        return record.call_at(self._all()[index])

    def __len__(self) -> int:
        """How many calls are kept."""
        return len(self._all())

    def __iter__(self) -> Iterator[Call]:
        return (self[position] for position in range(len(self)))

    def stack(self, dim: int = 0, *, of: Quantity = "output") -> Any:
        """The outputs (or inputs, or gradients) of all calls, stacked along a new dimension."""
        return self._join(torch.stack, dim, of)

    def cat(self, dim: int = 0, *, of: Quantity = "output") -> Any:
        """The outputs (or inputs, or gradients) of all calls, joined along a dimension."""
        return self._join(torch.cat, dim, of)

    def _join(self, join: Callable[..., torch.Tensor], dim: int, of: Quantity) -> Any:
        if not len(self):
            if not self._record.entries:
                self._record.raise_not_run()
            raise NotRunError(
                f"none of the {len(self._record.entries)} calls of {self._record.address!r} is "
                "among these: .calls are all of them, and call.step says what each was."
            )
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
            shapes = sorted({str(tuple(tensor.shape)) for tensor in row})
            raise SeveralCallsError(
                f"the calls of {self._record.address!r} have shapes {', '.join(shapes)}, which "
                f"cannot be joined along dimension {dim} ({error}). Try .cat(dim=...), or read "
                ".calls[i]."
            ) from None

    def __repr__(self) -> str:
        return f"[{', '.join(repr(call) for call in self)}]"


class ParameterRecord:
    """The gradients of one parameter: one for each backward pass in the scope."""

    __slots__ = ("address", "kept", "names", "requires_grad", "why")

    def __init__(self, address: str, names: Sequence[str], *, requires_grad: bool) -> None:
        self.address = address
        self.names = names
        self.requires_grad = requires_grad
        self.kept: list[Any] = []
        self.why: str | None = None  # why none can arrive

    @property
    def grad(self) -> Any:
        """The gradient of the only backward pass (what this pass added to `.grad`)."""
        grads = self.grads
        if len(grads) > 1:
            raise SeveralCallsError(
                f"{self.address!r} received gradients in {len(grads)} backward passes: read "
                ".grads[i], in the order of the passes."
            )
        return grads[0]

    @property
    def grads(self) -> list[Any]:
        """The gradients, one for each backward pass in the scope."""
        if self.kept:
            return [read_value(grad, f"a gradient of {self.address!r}") for grad in self.kept]
        if not self.requires_grad:
            raise NoGradientError(f"{self.address!r} is frozen: its requires_grad is False.")
        if self.why is not None:
            raise NoGradientError(f"no gradient of {self.address!r} can be recorded: {self.why}.")
        raise NoGradientError(
            f"no gradient has arrived at {self.address!r} in this scope: call backward() inside "
            "the scope, on a loss that depends on it."
        )

    def __repr__(self) -> str:
        passes = "1 backward pass" if len(self.kept) == 1 else f"{len(self.kept)} backward passes"
        return f"<gradients of {self.address!r}: {passes}>"
