"""Editing operations: the changes of a module's inputs and outputs, at `module/op#k`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from nethook.addresses.nested import map_tensors
from nethook.addresses.op_addresses import OpPattern, op_address
from nethook.addresses.tree import Tree
from nethook.editing.answers import Answer, Compute
from nethook.editing.callbacks.nodes import ChangeNodes
from nethook.editing.changes import (
    Change,
    ChangeCall,
    ChangeInput,
    ChangeInputGradient,
    ChangeOutput,
    ChangeOutputGradient,
    is_among,
)
from nethook.editing.entries import Entry
from nethook.hooks.hook import Owner
from nethook.hooks.ops.consumer import Met, Op, OpConsumer
from nethook.hooks.ops.missing import why_no_op
from nethook.hooks.ops.names import written_arguments
from nethook.torch_private import next_node_number

_Function = Callable[..., Any]
_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]
_BEFORE: dict[str, type[Change]] = {
    "calls": ChangeCall,
    "inputs": ChangeInput,
    "input_grads": ChangeInputGradient,
}


class OpEdits:
    """The entries that are meant for operations, each with the patterns that say where."""

    def __init__(self, tree: Tree, entries: Sequence[tuple[Entry, OpPattern]]) -> None:
        self._rules: dict[int, list[tuple[Entry, OpPattern]]] = {}  # by the order of the module
        self._modules: dict[Entry, list[str]] = {}
        self._met: set[Entry] = set()
        for entry, pattern in entries:
            for site in pattern.sites(tree):
                self._rules.setdefault(site.order, []).append((entry, pattern))
                self._modules.setdefault(entry, []).append(site.address)
                if pattern.one is not None:
                    entry.sites.append(op_address(site.address, *pattern.one))

    def meant_for(self, op: Op) -> list[Entry]:
        """The entries for one operation, in the order in which they were written."""
        rules = self._rules.get(op.place.order, ())
        meant = [entry for entry, pattern in rules if pattern.matches(op.name, op.k)]
        self._met.update(meant)
        return meant

    def met(self, entry: Entry) -> bool:
        """Whether any operation that an entry means has run."""
        return entry in self._met

    def why_unfired(self, entry: Entry, pattern: OpPattern, met: Met | None) -> str:
        """Why no operation of an entry was met."""
        reasons = [why_no_op(met, address, pattern.name or "") for address in self._modules[entry]]
        more = f" (and {len(reasons) - 1} more modules)" if len(reasons) > 1 else ""
        return f"no such operation has run inside the scope{more}: {reasons[0]}"


class ChangeOps(OpConsumer):
    """Changes what operations are given and what they return."""

    def __init__(self, owner: Owner, edits: OpEdits) -> None:
        self._owner = owner
        self._edits = edits

    def wants(self, op: Op) -> bool:
        """Whether an entry means it; then it gets a hook for each quantity, as a module does."""
        entries = self._edits.meant_for(op)
        if not entries:
            return False
        for entry in entries:
            if op.address not in entry.sites:
                entry.sites.append(op.address)
        op.data = _OpHooks(self._owner, op.address, entries)
        return True

    def before(
        self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs
    ) -> tuple[_Args, _Kwargs] | None:
        """The new arguments; None where nothing changed."""
        hooks: _OpHooks = op.data
        if hooks.nodes is not None:
            hooks.nodes.begun.append(next_node_number())
        if not hooks.before:
            return None
        own = _OwnCopies(written_arguments(function, args, kwargs))
        new = given = (own.copies(args), own.copies(kwargs))
        for change in hooks.before:
            new = change(None, *new) or new
        return None if new is given else own.originals(new)

    def instead(
        self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, compute: Compute
    ) -> Any:
        """What an answer makes of the operation; else what it computes."""
        hooks: _OpHooks = op.data
        if hooks.answer is None:
            return compute(*args, **kwargs)
        return hooks.answer(None, args, kwargs, compute)

    def after(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, result: Any) -> Any:
        """The new result; None where nothing changed."""
        hooks: _OpHooks = op.data
        written = written_arguments(function, args, kwargs)
        new = result
        if hooks.output is not None:
            own = _OwnCopies(written)
            edited = hooks.output(None, args, own.copies(result))
            new = result if edited is None else own.originals(edited)
        if hooks.gradient is not None:
            # The result of an operation in place is its own, although it is one of the arguments.
            others = map_tensors(lambda tensor: None if is_among(tensor, written) else tensor, args)
            hooked = hooks.gradient(None, others, kwargs, new)
            new = new if hooked is None else hooked
        if hooks.nodes is not None:
            new = hooks.nodes.put_on((args, kwargs), new, written)
        return None if new is result else new


class _OpHooks:
    """The hooks of one operation, in the order in which they apply."""

    __slots__ = ("answer", "before", "gradient", "nodes", "output")

    def __init__(self, owner: Owner, address: str, entries: list[Entry]) -> None:
        by_quantity: dict[str, list[Entry]] = {}
        for entry in entries:
            by_quantity.setdefault(entry.quantity, []).append(entry)
        self.before: list[Change] = [
            kind(owner, address, by_quantity[quantity])
            for quantity, kind in _BEFORE.items()
            if quantity in by_quantity
        ]
        self.answer: Answer | None = None
        if "answers" in by_quantity:
            self.answer = Answer(owner, address, by_quantity["answers"])
        self.output: ChangeOutput | None = None
        self.gradient: ChangeOutputGradient | None = None
        self.nodes: ChangeNodes | None = None
        if "nodes" in by_quantity:
            self.nodes = ChangeNodes(owner, address, by_quantity["nodes"])
        if "outputs" in by_quantity:
            self.output = ChangeOutput(owner, address, by_quantity["outputs"])
        if "grads" in by_quantity:
            self.gradient = ChangeOutputGradient(owner, address, by_quantity["grads"])


class _OwnCopies:
    """Gives an edit copies of what is written in place.

    The edit's own operations may keep what they are given for the backward pass, and what it
    returns is written over it.
    """

    def __init__(self, written: list[torch.Tensor]) -> None:
        self._written = written
        self._originals: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by id of the copy

    def copies(self, value: Any) -> Any:
        """A value with copies in the place of what is written."""
        return map_tensors(self._copy, value) if self._written else value

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        if not is_among(tensor, self._written):
            return tensor
        copied = tensor.clone()
        self._originals[id(copied)] = (copied, tensor)
        return copied

    def originals(self, value: Any) -> Any:
        """A value with the originals in the place of copies that were not changed."""
        if not self._originals:
            return value
        return map_tensors(
            lambda tensor: self._originals.get(id(tensor), (tensor, tensor))[1], value
        )
