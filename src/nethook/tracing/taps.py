"""The hooks of a trace: each writes what passes by into a record.

A tap holds the record and the options, never a module. It returns None, so it changes nothing.

Two kinds of calls are seen and not written. Inside a backward pass (`backward_id()` is not -1) a
checkpointed block runs its forward again: its calls would count twice. Inside a `torch.func`
transform the tensors are wrappers that are dead once the transform ends.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import map_tensors, tensors
from nethook.hooks.autograd.gradients import Sink, ask
from nethook.hooks.autograd.nodes import HeldNode
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import quiet
from nethook.hooks.threads import elsewhere, open_here, taken_off
from nethook.torch_private import (
    backward_id,
    dispatch_modes,
    function_modes,
    in_transform,
    next_node_number,
)
from nethook.tracing.early_stop import StopPlan
from nethook.tracing.keep import Keep, Keeper, keep_value
from nethook.tracing.objects import is_plain
from nethook.tracing.tape.entry import Entry, Gradients, Stack, outline
from nethook.tracing.tape.record import ParameterRecord, Record
from nethook.tracing.tape.state import State

_Tensor = torch.Tensor

Add = Callable[[tuple[Any, ...]], None]

RECOMPUTED = (
    "only inside a backward pass, where a checkpointed block is computed again; the first pass is "
    "what is recorded"
)
TRANSFORMED = "inside a torch.func transform (vmap, grad, …), whose values do not outlive it"


class OutputTap(Hook):
    """After a forward, when nothing but the output was asked for."""

    __slots__ = ("_add", "_keep", "_plainly", "_record", "_state")

    def __init__(self, owner: Owner, record: Record, add: Add, keep: Keeper) -> None:
        self.owner = owner
        self.address = record.address
        self._record = record
        self._state = record.state
        self._add = add
        self._keep = keep
        self._plainly = keep.plainly

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Writes down a call."""
        if self.owner not in open_here() and elsewhere(self.owner, module):
            return
        if backward_id() != -1 or in_transform():
            skip(self._record)
            return
        if type(output) is _Tensor and not function_modes() and not dispatch_modes():
            kept = self._plainly(output)
        else:
            kept = keep_value(self._keep, output)
        self._add((self._state.forward, kept))  # the first fields of an Entry


class InputTap(Hook):
    """Before a forward: keeps the arguments until the module returns."""

    __slots__ = ("_keep", "_state", "begun")

    def __init__(self, owner: Owner, record: Record, keep: Keep) -> None:
        super().__init__(owner, record.address)
        self._keep = keep
        self._state = record.state
        self.begun: Stack[Entry] = Stack()  # the innermost last: a module may call itself

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        """Notes that a call has begun."""
        if backward_id() != -1 or in_transform() or elsewhere(self.owner, module):
            return
        self.begun.append(begin(self, self._state, self._keep, args, kwargs))


class CallTap(OutputTap):
    """After a forward, when more than the output was asked for, or an early stop."""

    __slots__ = ("_before", "_plan")

    def __init__(
        self, owner: Owner, record: Record, add: Add, keep: Keeper,
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
            skip(self._record)
            return
        if self._before is not None and self._before.begun:
            entry = self._before.begun.pop()
        else:
            entry = Entry(self._state.forward, None)
        self._add(finish(self, self._state, self._keep, entry, args, kwargs, output))
        if self._plan is not None:
            self._plan.saw(self.address)


def skip(record: Record) -> None:
    """Notes why a call is not written."""
    record.skipped = RECOMPUTED if backward_id() != -1 else TRANSFORMED


def begin(
    tap: Hook, state: State, keep: Keep, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> Entry:
    """What is known of a call when it begins. `kwargs` is None where a global hook sees it."""
    options = state.options
    inputs: tuple[Any, Any] = ((), None if kwargs is None else {})
    grads = None
    if options.inputs:
        inputs = keep_value(keep, (args, kwargs))
    if options.input_grads and kwargs is not None:
        grads = gradients(tap, keep, (args, kwargs))
    return Entry(state.forward, None, inputs, None, grads, returned=False, begin=next_node_number())


def finish(
    tap: Hook, state: State, keep: Keep, entry: Entry, args: tuple[Any, ...],
    kwargs: dict[str, Any], output: Any,
) -> Entry:  # fmt: skip
    """The same with what is known when it has returned."""
    options = state.options
    inputs, input_grads, grads = entry.inputs, entry.input_grads, None
    nodes, end = None, 0
    if inputs is not None:
        if inputs[1] is None:  # it began under a global hook, which is told of kwargs only now
            inputs = (inputs[0], keep_value(keep, kwargs) if options.inputs else {})
            if options.input_grads:
                input_grads = gradients(tap, keep, (args, kwargs))
        if options.nodes:
            end = next_node_number()
            nodes = held_nodes(output)
    if options.grads:
        grads = gradients(tap, keep, output, (args, kwargs))
    kept = keep_value(keep, output)
    return Entry(
        entry.forward, kept, inputs, grads, input_grads, True, nodes, entry.begin, end, get_ident()
    )


def gradients(tap: Hook, keep: Keep, value: Any, given: Any = ()) -> Gradients | None:
    """Asks every tensor in `value` for its gradient; None if none of them requires one."""
    members = tensors(value)
    with quiet():
        if not any(tensor.requires_grad for _, tensor in members):
            return None
        sink = Sink(keep)
        inputs = [tensor for _, tensor in tensors(given)]
        for key, (_, tensor) in enumerate(members):
            if tensor.requires_grad:
                ask(tensor, key, sink, tap.owner, tap.address, inputs)
    return Gradients(sink, outline(value))


def held_nodes(value: Any) -> Any:
    """A nested value with the autograd nodes that made its tensors in their place."""
    with quiet():
        return map_tensors(
            lambda tensor: HeldNode(tensor) if tensor.requires_grad else None,
            value,
            lambda other: other if is_plain(other) else None,
            attributes="drop",
        )


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
                for entry in tap.begun.take(every=every):
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
            # A new forward. Calls of the last one that are still open in this thread raised; the
            # depth is then off as well where nothing tells that the model itself has ended.
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
