"""The hooks of a trace: each writes what passes by into a record.

A tap holds the record and the options, never a module. It returns None, so it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, NamedTuple

import torch
from torch import nn

from nethook.addresses.nested import map_tensors, tensors
from nethook.hooks.autograd.gradients import Sink, ask
from nethook.hooks.autograd.nodes import HeldNode
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import quiet
from nethook.hooks.threads import elsewhere, taken_off
from nethook.torch_private import backward_id, in_transform, next_node_number
from nethook.tracing.early_stop import StopPlan
from nethook.tracing.keep import Keep, keep_value
from nethook.tracing.objects import is_plain
from nethook.tracing.tape.entry import Entry, Gradients, Nodes, Stack, State, outline
from nethook.tracing.tape.parameter_record import ParameterRecord
from nethook.tracing.tape.record import Record

_Tensor = torch.Tensor

Add = Callable[[tuple[Any, ...]], None]

RECOMPUTED = (
    "only inside a backward pass, where a checkpointed block is computed again; the first pass is "
    "what is recorded"
)
TRANSFORMED = "inside a torch.func transform (vmap, grad, …), whose values do not outlive it"


class OutputTap(Hook):
    """After a forward, when nothing but the output was asked for."""

    __slots__ = ("_add", "_keep", "_record", "_state")

    def __init__(self, owner: Owner, record: Record, add: Add, keep: Keep) -> None:
        self.owner = owner
        self.address = record.address
        self._record = record
        self._state = record.state
        self._add = add
        self._keep = keep

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Writes down a call."""
        if elsewhere(self.owner, module):
            return
        if backward_id() != -1 or in_transform():
            self._skip()
            return
        keep = self._keep
        kept = keep(output) if type(output) is _Tensor else keep_value(keep, output)
        self._add((self._state.forward, kept))

    def _skip(self) -> None:
        self._record.skipped = RECOMPUTED if backward_id() != -1 else TRANSFORMED


class Begun(NamedTuple):
    """A call that has begun: what is known of it before it returns."""

    forward: int | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any] | None  # None where a global hook was not told of them
    grads: Gradients | None
    node: int  # the number that the next autograd node will have


class InputTap(Hook):
    """Before a forward: keeps the arguments until the module returns."""

    __slots__ = ("_keep", "_options", "_record", "begun")

    def __init__(self, owner: Owner, record: Record, keep: Keep) -> None:
        super().__init__(owner, record.address)
        self._record = record
        self._keep = keep
        self._options = record.state.options
        self.begun: Stack[Begun] = Stack()  # the innermost last: a module may call itself

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        """Notes that a call has begun."""
        if backward_id() != -1 or in_transform() or elsewhere(self.owner, module):
            return
        kept: tuple[Any, Any] = ((), None if kwargs is None else {})
        grads = None
        if self._options.inputs:
            kept = keep_value(self._keep, (args, kwargs))
        if self._options.input_grads and kwargs is not None:
            grads = gradients(self, self._keep, (args, kwargs))
        self.begun.append(Begun(self._record.state.forward, *kept, grads, next_node_number()))

    def give_up(self, *, every: bool) -> list[Entry]:
        """The calls that began and never returned, as entries; they are forgotten here."""
        return [
            Entry(each.forward, None, (each.args, each.kwargs or {}), None, each.grads, False)
            for each in self.begun.take(every=every)
        ]


class CallTap(OutputTap):
    """After a forward, when more than the output was asked for, or an early stop."""

    __slots__ = ("_before", "_plan")

    def __init__(
        self, owner: Owner, record: Record, add: Add, keep: Keep,
        plan: StopPlan | None, before: InputTap | None,
    ) -> None:  # fmt: skip
        super().__init__(owner, record, add, keep)
        self._plan = plan
        self._before = before

    def __call__(self, module: nn.Module, args: tuple[Any, ...], *told: Any) -> None:
        """Writes down a call, with what was noted when it began."""
        if elsewhere(self.owner, module) or taken_off(told):
            return
        kwargs, output = told
        if backward_id() != -1 or in_transform():
            self._skip()
            return
        keep = self._keep
        options = self._state.options
        forward, inputs, input_grads, grads = self._state.forward, None, None, None
        nodes: Nodes | None = None
        if self._before is not None and self._before.begun:
            begun = self._before.begun.pop()
            forward, input_grads = begun.forward, begun.grads
            given = begun.kwargs
            if given is None:  # watched through a global hook, which learns of them only now
                given = keep_value(keep, kwargs) if options.inputs else {}
                if options.input_grads:
                    input_grads = gradients(self, keep, (args, kwargs))
            inputs = (begun.args, given)
            if options.nodes:
                nodes = nodes_of(output, begun.node)
        if options.grads:
            grads = gradients(self, keep, output, (args, kwargs))
        kept = keep_value(keep, output)
        self._add(Entry(forward, kept, inputs, grads, input_grads, nodes=nodes))
        if self._plan is not None:
            self._plan.saw(self.address)


def gradients(tap: Hook, keep: Keep, value: Any, given: Any = ()) -> Gradients | None:
    """Asks every tensor in `value` for its gradient; None if none of them requires one."""
    found = tensors(value)
    with quiet():
        if not any(tensor.requires_grad for _, tensor in found):
            return None
        sink = Sink(keep)
        inputs = [tensor for _, tensor in tensors(given)]
        for key, (_, tensor) in enumerate(found):
            if tensor.requires_grad:
                ask(tensor, key, sink, tap.owner, tap.address, inputs)
    return Gradients(sink, outline(value))


def nodes_of(value: Any, begin: int) -> Nodes:
    """The nodes that made the tensors of an output, of a call that began at the number `begin`."""
    end = next_node_number()
    with quiet():
        made = map_tensors(
            _held_node, value, lambda each: each if is_plain(each) else None, attributes="drop"
        )
    return Nodes(made, begin, end, get_ident())


def _held_node(tensor: torch.Tensor) -> HeldNode | None:
    return HeldNode(tensor) if tensor.requires_grad else None


class ParameterTap(Hook):
    """When the gradient of a parameter was computed."""

    __slots__ = ("_keep", "_record")

    def __init__(self, owner: Owner, record: ParameterRecord, keep: Keep) -> None:
        super().__init__(owner, record.address)
        self._record = record
        self._keep = keep

    def __call__(self, grad: torch.Tensor) -> None:
        """Writes down a gradient."""
        self._record.kept.append(self._keep(grad))


class Unfinished:
    """The calls that have begun and not returned, of all sites of a scope."""

    __slots__ = ("_sites",)

    def __init__(self) -> None:
        self._sites: list[tuple[InputTap, Add]] = []

    def add(self, tap: InputTap, add: Add) -> None:
        """Takes in the tap before a site's forward, and where its calls are written."""
        self._sites.append((tap, add))

    def give_up(self, *, every: bool = False) -> None:
        """Writes down the calls of this thread, or all, that will not return: something raised."""
        for tap, add in self._sites:
            if every or tap.begun:
                for entry in tap.give_up(every=every):
                    add(entry)


class ForwardBegins(Hook):
    """Before the model itself is called: counts its forwards."""

    __slots__ = ("_may_nest", "_state", "_unfinished")

    def __init__(
        self, owner: Owner, state: State, unfinished: Unfinished, *, may_nest: bool
    ) -> None:
        super().__init__(owner, "")
        self._state = state
        self._unfinished = unfinished
        self._may_nest = may_nest

    def __call__(self, module: nn.Module, *given: Any) -> None:
        """Notes that a forward begins."""
        if elsewhere(self.owner, module):
            return
        state = self._state
        if state.depth == 0 or not self._may_nest:
            self._unfinished.give_up()
            state.depth = 0
            state.begin_forward(given)
        state.depth += 1


class ForwardEnds(Hook):
    """After the model itself was called, also when it raised; the output is None then."""

    __slots__ = ("_plan", "_state")

    def __init__(self, owner: Owner, state: State, plan: StopPlan | None) -> None:
        super().__init__(owner, "")
        self._state = state
        self._plan = plan

    def __call__(self, module: nn.Module, *given: Any) -> None:
        """Notes that a forward has ended."""
        if elsewhere(self.owner, module):
            return
        state = self._state
        state.depth -= 1
        if state.depth == 0:
            state.forward = None
            if self._plan is not None:
                self._plan.finished(whole=given[-1] is not None)
