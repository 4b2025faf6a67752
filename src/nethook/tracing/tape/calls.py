"""How the calls of a site are read: values and gradients, or an error that says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, overload

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors
from nethook.errors import NoGradientError, NotRunError, SeveralCallsError
from nethook.hooks.autograd.nodes import HeldNode
from nethook.tracing.keep import held_tensors, read_value
from nethook.tracing.tape.describe import shapes
from nethook.tracing.tape.entry import Entry, Gradients
from nethook.tracing.tape.site_calls import SiteCalls

Quantity = Literal["output", "input", "grad"]


class Call:
    """One call of a module: what went in, what came out, and the gradients of both."""

    __slots__ = ("_entry", "_record", "index")

    def __init__(self, record: SiteCalls, entry: Entry, index: int) -> None:
        self._record = record
        self._entry = entry
        self.index = index  # its number among all calls of the site, from 0

    @property
    def forward(self) -> int | None:
        """Which forward of the model it belongs to, from 0; None if it was called on its own."""
        return self._entry.forward

    @property
    def step(self) -> int | None:
        """In a generation: 0 for a forward that reads the prompt, then 1, 2, … for each token.

        None for a module that was called on its own. `nethook.tracing.generation` says how the
        two are told apart.
        """
        return _step(self._record.state.steps(), self.forward)

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
        """The gradient of the output. Inside a nested output, None where none arrived."""
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

    @property
    def node(self) -> Any:
        """The autograd node that made the output; inside a nested output, None where none did.

        It is the node of the tensor as the module returned it, whatever was written to it since.
        """
        if not self._record.state.options.nodes:
            raise self._record.not_asked("autograd nodes", "nodes=True")
        nodes = self._entry.nodes
        held = [] if nodes is None else held_nodes(nodes.made)
        if nodes is None or not held:
            raise NoGradientError(
                f"no autograd node made the output of {self._what}: it did not require a gradient "
                "when it ran."
            )
        return map_tensors(_same, nodes.made, _node)

    def _inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not self._record.state.options.inputs:
            raise self._record.not_asked("inputs", "inputs=True")
        assert self._entry.inputs is not None
        return self._entry.inputs

    def _passes(self, grads: Gradients | None, of: str) -> list[Any]:
        if grads is None:
            if of == "the output" and not held_tensors(self._entry.output):
                kind = type(self.output).__name__
                raise NoGradientError(
                    f"{of} of {self._what} holds no tensor that can be addressed: it is a {kind}. "
                    "Trace the module or the operation that made the tensor inside it."
                )
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
        return grads.passes()

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


def held_nodes(made: Any) -> list[HeldNode]:
    """Every node in an output in which nodes stand for the tensors they made."""
    held: list[HeldNode] = []

    def note(each: Any) -> Any:
        if isinstance(each, HeldNode):
            held.append(each)
        return each

    map_tensors(_same, made, note)
    return held


def _same(value: Any) -> Any:
    return value


def _node(each: Any) -> Any:
    return each.node if isinstance(each, HeldNode) else each


class Calls(Sequence[Call]):
    """The calls of one site, over all forwards in the scope, or some of them."""

    __slots__ = ("_places", "_record")

    def __init__(self, record: SiteCalls, places: list[int] | None = None) -> None:
        self._record = record
        self._places = places  # which of the calls that were kept; None for all

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
        entries = [Entry(*entry) for entry in self._record.entries]
        return Calls(
            self._record,
            [
                place
                for place in self._all()
                if (step := _step(steps, entries[place].forward)) is not None and wanted(step)
            ],
        )

    def _all(self) -> Sequence[int]:
        return range(len(self._record.entries)) if self._places is None else self._places

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
        if not -len(self) <= index < len(self):
            if not record.entries:
                record.raise_not_run()
            among = "are kept" if self._places is None else "are here"
            raise IndexError(
                f"call {index} of {record.address!r} was asked for, and {len(self)} {among}"
                + (
                    f" of {record.total} (calls={record.state.options.calls!r})."
                    if dropped
                    else "."
                )
            )
        at = self._all()[index]
        return Call(record, Entry(*record.entries[at]), dropped + at)

    def __len__(self) -> int:
        """How many calls are kept."""
        return len(self._all())

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
            found = sorted({str(tuple(tensor.shape)) for tensor in row})
            raise SeveralCallsError(
                f"the calls of {self._record.address!r} have shapes {', '.join(found)}, which "
                f"cannot be joined along dimension {dim} ({error}). Try .cat(dim=...), or read "
                ".calls[i]."
            ) from None

    def __repr__(self) -> str:
        return f"[{', '.join(repr(call) for call in self)}]"


def _step(steps: list[int], forward: int | None) -> int | None:
    # A tape that was cleared in the middle of a forward no longer knows that forward.
    return None if forward is None or forward >= len(steps) else steps[forward]
