"""Tracing operations: each that a pattern means gets a record when it is first met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from nethook.addresses.ops import OpPattern, op_address
from nethook.addresses.tree import Tree
from nethook.errors import NotRunError
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.nodes import next_number
from nethook.hooks.op_missing import why_no_op
from nethook.hooks.op_sites import Op, OpConsumer
from nethook.tracing.entry import Entry, State
from nethook.tracing.keep import Keep, keep_value
from nethook.tracing.op_record import OpRecord
from nethook.tracing.order import StopPlan
from nethook.tracing.record import Record
from nethook.tracing.taps import RECOMPUTED, TRANSFORMED, Add, Begun, gradients, nodes_of

_Tensor = torch.Tensor
_graph_task = torch._C._current_graph_task_id
_in_transform = torch._C._are_functorch_transforms_active

_Function = Callable[..., Any]
_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]


class OpRecords:
    """The operations that patterns mean, and the records of those that ran or were named."""

    def __init__(self, tree: Tree, patterns: Sequence[OpPattern], state: State) -> None:
        self.state = state
        self.patterns = patterns
        self._rules: dict[int, list[OpPattern]] = {}  # by the order of the module
        self._modules: dict[str, int] = {}  # the order of each module that is meant, by name
        # The tape puts its own dict here, in which the records of modules are as well.
        self.records: dict[str, Record] = {}
        for pattern in patterns:
            for site in pattern.sites(tree):
                self._rules.setdefault(site.order, []).append(pattern)
                names = site.names + site.long
                self._modules.update(dict.fromkeys(names, site.order))
                if pattern.one is not None:
                    self._named(names, *pattern.one)

    def _named(self, modules: tuple[str, ...], name: str, k: int) -> OpRecord:
        names = [op_address(each, name, k) for each in modules]
        record = OpRecord(self.state, names[0], names, modules, name, k)
        self.records.setdefault(record.address, record)
        return record

    def means(self, op: Op) -> bool:
        """Whether a pattern means this operation."""
        rules = self._rules.get(op.place.order)
        return rules is not None and any(rule.matches(op.name, op.k) for rule in rules)

    def of(self, op: Op) -> Record:
        """The record of an operation."""
        known = self.records.get(op.address)
        return self._named(op.place.names, op.name, op.k) if known is None else known

    @property
    def open_ended(self) -> bool:
        """Whether only a forward tells how many operations the patterns mean."""
        return any(pattern.one is None for pattern in self.patterns)

    def find(self, text: str) -> list[OpRecord]:
        """The records that a pattern means."""
        pattern = OpPattern(text)
        records = [each for each in self.records.values() if isinstance(each, OpRecord)]
        return [each for each in records if each.is_meant_by(pattern)]

    def why_none(self, text: str) -> NotRunError | None:
        """Why there is no record for a pattern that was asked for; None where it was not."""
        pattern = OpPattern(text)
        watcher = self.state.watcher
        for name, order in self._modules.items():
            if not pattern.means_module([name]):
                continue
            for rule in self._rules[order]:
                if rule.text == text or (pattern.name and rule.matches(pattern.name, 0)):
                    why = why_no_op(watcher, name, pattern.name or "")
                    return NotRunError(f"{text!r} has not run in this scope: {why}")
        return None


class OutputOps(OpConsumer):
    """Keeps what operations return, when nothing else was asked for."""

    def __init__(self, owner: Owner, records: OpRecords, keep: Keep, most: int | None) -> None:
        self._owner = owner
        self._records = records
        self._keep = keep
        self._most = most
        self._state = records.state

    def wants(self, op: Op) -> bool:
        """Whether a pattern means it; then it gets a tap."""
        if not self._records.means(op):
            return False
        record = self._records.of(op)
        add = record.entries.append if self._most is None else record.limit(self._most)
        op.data = OpTap(self._owner, record, add)
        return True

    def after(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, result: Any) -> None:
        """Writes down a call."""
        tap: OpTap = op.data
        if _graph_task() != -1 or _in_transform():
            tap.skip()
            return
        keep = self._keep
        kept = keep(result) if type(result) is _Tensor else keep_value(keep, result)
        tap.add((self._state.forward, kept))


class CallOps(OutputOps):
    """Keeps more than what operations return, or stops early."""

    def __init__(
        self, owner: Owner, records: OpRecords, keep: Keep, most: int | None,
        plan: StopPlan | None,
    ) -> None:  # fmt: skip
        super().__init__(owner, records, keep, most)
        self._plan = plan
        self._options = records.state.options

    def before(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs) -> None:
        """Notes that a call has begun."""
        if _graph_task() != -1 or _in_transform():
            return
        kept: tuple[Any, Any] = ((), {})
        grads = None
        if self._options.inputs:
            kept = keep_value(self._keep, (args, kwargs))
        if self._options.input_grads:
            grads = gradients(op.data, self._keep, (args, kwargs))
        op.data.begun.append(Begun(self._state.forward, *kept, grads, next_number()))

    def after(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, result: Any) -> None:
        """Writes down a call, with what was noted when it began."""
        tap: OpTap = op.data
        if _graph_task() != -1 or _in_transform():
            tap.skip()
            return
        begun = tap.begun.pop()
        nodes = nodes_of(result, begun.node) if self._options.nodes else None
        grads = None
        if self._options.grads:
            grads = gradients(tap, self._keep, result, (args, kwargs))
        kept = keep_value(self._keep, result)
        inputs = (begun.args, begun.kwargs or {})
        tap.add(Entry(begun.forward, kept, inputs, grads, begun.grads, nodes=nodes))
        if self._plan is not None:
            self._plan.saw(tap.address)

    def failed(
        self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, error: BaseException
    ) -> None:
        """Writes down a call that raised."""
        tap: OpTap = op.data
        if tap.begun:
            begun = tap.begun.pop()
            inputs = (begun.args, begun.kwargs or {})
            tap.add(Entry(begun.forward, None, inputs, None, begun.grads, False))


class OpTap(Hook):
    """Where the calls of one operation are written."""

    __slots__ = ("add", "begun", "record")

    def __init__(self, owner: Owner, record: Record, add: Add) -> None:
        super().__init__(owner, record.address)
        self.record = record
        self.add = add
        self.begun: list[Begun] = []

    def skip(self) -> None:
        """Notes why a call is not written."""
        self.record.skipped = RECOMPUTED if _graph_task() != -1 else TRANSFORMED
