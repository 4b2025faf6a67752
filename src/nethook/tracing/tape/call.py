"""What can be read of one call: values and gradients, or an error that says why not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors
from nethook.errors import NoGradientError, NotAskedError, NotRunError, SeveralCallsError
from nethook.hooks.autograd.nodes import HeldNode
from nethook.tracing.keep import held_tensors, read_value
from nethook.tracing.tape.describe import shapes
from nethook.tracing.tape.entry import Entry, Gradients
from nethook.tracing.tape.state import State


class OneCall(ABC):
    """The values of one call: of a `Call`, or of the only one that a `Record` has."""

    __slots__ = ("address", "state")

    address: str
    state: State

    @property
    @abstractmethod
    def _entry(self) -> Entry:
        """What was written down of the call; raises where there is not one call."""

    @property
    def _what(self) -> str:
        """The call, in messages."""
        return repr(self.address)

    @property
    def forward(self) -> int | None:
        """Which forward of the model it belongs to, from 0; None if it was called on its own."""
        return self._entry.forward

    @property
    def output(self) -> Any:
        """What the module returned."""
        entry = self._entry
        if not entry.returned:
            raise NotRunError(
                f"{self._what} raised an exception before it returned; .args and .kwargs tell "
                "what it was called with."
            )
        return read_value(entry.output, f"the output of {self._what}")

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
        entry = self._entry
        if not self.state.options.grads:
            raise self._not_asked("gradients", "grads=True")
        if entry.grads is None and not held_tensors(entry.output):
            kind = type(self.output).__name__
            raise NoGradientError(
                f"the output of {self._what} holds no tensor that can be addressed: it is a "
                f"{kind}. Trace the module or the operation that made the tensor inside it."
            )
        return self._passes(entry.grads, "the output")

    @property
    def input_grads(self) -> Inputs:
        """The gradients of the inputs: `input_grads[0]` by position, `input_grads["x"]` by name.

        The gradient of an input counts every use of that tensor, in this module and elsewhere.
        """
        entry = self._entry
        if not self.state.options.input_grads:
            raise self._not_asked("input gradients", "input_grads=True")
        passes = self._passes(entry.input_grads, "the inputs")
        if len(passes) > 1:
            raise SeveralCallsError(
                f"input gradients of {self._what} arrived in {len(passes)} backward passes. Run "
                "one backward pass per trace to tell them apart."
            )
        args, kwargs = passes[0]
        return Inputs(args, kwargs)

    @property
    def node(self) -> Any:
        """The autograd node that made the output; inside a nested output, None where none did.

        It is the node of the tensor as the module returned it, whatever was written to it since.
        """
        entry = self._entry
        if not self.state.options.nodes:
            raise self._not_asked("autograd nodes", "nodes=True")
        held: list[HeldNode] = []

        def read(value: Any) -> Any:
            if not isinstance(value, HeldNode):
                return value
            held.append(value)
            return value.node

        nodes = map_tensors(_same, entry.nodes, read)
        if not held:
            raise NoGradientError(
                f"no autograd node made the output of {self._what}: it did not require a gradient "
                "when it ran."
            )
        return nodes

    def _inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        entry = self._entry
        if not self.state.options.inputs:
            raise self._not_asked("inputs", "inputs=True")
        assert entry.inputs is not None
        args, kwargs = entry.inputs
        return args, kwargs or {}

    def _not_asked(self, what: str, option: str) -> NotAskedError:
        return NotAskedError(
            f"the {what} of {self.address!r} were not recorded: trace with {option}."
        )

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
        return grads.passes()


class Call(OneCall):
    """One call of a module: what went in, what came out, and the gradients of both."""

    __slots__ = ("_data", "_only", "index")

    def __init__(
        self, state: State, address: str, fields: tuple[Any, ...], index: int, *, only: bool
    ) -> None:
        self.state = state
        self.address = address
        self._data = Entry(*fields)
        self._only = only
        self.index = index  # its number among all calls of the site, from 0

    @property
    def _entry(self) -> Entry:
        return self._data

    @property
    def _what(self) -> str:
        return repr(self.address) + ("" if self._only else f" (call {self.index})")

    @property
    def step(self) -> int | None:
        """In a generation: 0 for a forward that reads the prompt, then 1, 2, … for each token.

        None for a module that was called on its own. `nethook.tracing.generation` says how the
        two are told apart.
        """
        return self.state.steps().get(self.forward)

    @property
    def shape(self) -> str:
        """The shapes of the tensors in the output, as text."""
        return shapes(self._data.output) if self._data.returned else "raised"

    def __repr__(self) -> str:
        forward = "" if self.forward is None else f", forward {self.forward}"
        return f"<call {self.index} of {self.address!r}{forward}: {self.shape}>"


def _same(value: Any) -> Any:
    return value
