"""Tracing operations: each that a pattern means gets a record when it is first met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from nethook.addresses.op_addresses import OpPattern, op_address
from nethook.addresses.tree import Tree
from nethook.errors import NotRunError
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.missing import why_no_op
from nethook.torch_private import backward_id, in_transform, next_node_number
from nethook.tracing.entry import Entry, Stack, State
from nethook.tracing.keep import Keep, keep_value
from nethook.tracing.op_record import OpRecord
from nethook.tracing.order import StopPlan
from nethook.tracing.record import Record
from nethook.tracing.taps import RECOMPUTED, TRANSFORMED, Add, Begun, gradients, nodes_of

_Tensor = torch.Tensor

_Function = Callable[..., Any]
_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]


class OpRecords:
    """The operations that patterns mean, and the records of those that ran or were named."""

    def __init__(self, tree: Tree, patterns: Sequence[OpPattern], state: State) -> None:
        self.state = state
        self.patterns = patterns
        self._everywhere = [pattern for pattern in patterns if pattern.every_module]
        self._rules: dict[int, list[OpPattern]] = {}  # the others, by the order of the module
        self._first: dict[str, str] = {}  # the first module that a pattern means
        self.everything = any(pattern.every for pattern in self._everywhere)
        # The tape puts its own dict here, in which the records of modules are as well.
        self._records: dict[str, Record] = {}
        self.log: list[tuple[Op, int | None, Any]] = []  # calls that are in no record as yet
        for pattern in patterns:
            self._read(tree, pattern)

    def _read(self, tree: Tree, pattern: OpPattern) -> None:
        if pattern.every_module and pattern.one is None:
            return
        for site in pattern.sites(tree):
            self._rules.setdefault(site.order, []).append(pattern)
            self._first.setdefault(pattern.text, site.address)
            if pattern.one is not None and not pattern.every_module:
                self._named(site.names + site.long, *pattern.one)

    def _named(self, modules: tuple[str, ...], name: str, k: int) -> OpRecord:
        names = [op_address(each, name, k) for each in modules]
        record = OpRecord(self.state, names[0], names, modules, name, k)
        self._records.setdefault(record.address, record)
        return record

    @property
    def records(self) -> dict[str, Record]:
        """All records by address. Those of operations are made when they are first read."""
        log = self.log[:]
        del self.log[: len(log)]
        for op, forward, kept in log:
            self.of(op).entries.append((forward, kept))
        return self._records

    def join(self, records: dict[str, Record]) -> None:
        """Keeps the records of operations together with others."""
        records.update(self._records)
        self._records = records

    def means(self, op: Op) -> bool:
        """Whether a pattern means this operation."""
        if self.everything:
            return True
        rules = self._rules.get(op.place.order)
        if rules is not None and any(rule.matches(op.name, op.k) for rule in rules):
            return True
        return any(rule.matches(op.name, op.k) for rule in self._everywhere)

    def of(self, op: Op) -> Record:
        """The record of an operation."""
        known = self._records.get(op.address)
        return self._named(op.place.names, op.name, op.k) if known is None else known

    @property
    def open_ended(self) -> bool:
        """Whether only a forward tells how many operations the patterns mean."""
        return any(pattern.one is None or pattern.every_module for pattern in self.patterns)

    def find(self, text: str) -> list[OpRecord]:
        """The records that a pattern means."""
        pattern = OpPattern(text)
        records = [each for each in self.records.values() if isinstance(each, OpRecord)]
        return [each for each in records if each.is_meant_by(pattern)]

    def why_none(self, text: str) -> NotRunError | None:
        """Why there is no record for a pattern that was asked for; None where it was not."""
        pattern = OpPattern(text)
        module = self._first.get(text, pattern.only_module)
        asked = any(each.text == text for each in self.patterns)
        if not asked and module is not None and pattern.name is not None:
            asked = any(
                rule.means_module([module]) and rule.matches(pattern.name, pattern.number or 0)
                for rule in self.patterns
            )
        if not asked:
            return None
        why = (
            "no module has had such an operation."
            if module is None
            else why_no_op(self.state.met, module, pattern.name or "")
        )
        return NotRunError(f"{text!r} has not run in this scope: {why}")


class EveryOutput(OpConsumer):
    """Keeps what all operations return, when nothing else was asked for."""

    shares_ops = True

    def __init__(self, records: OpRecords, keep: Keep) -> None:
        self._records = records
        self._keep = keep
        self._state = records.state
        self._write = records.log.append

    def after(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, result: Any) -> None:
        """Writes down a call."""
        if backward_id() != -1 or in_transform():
            skip(self._records.of(op))
            return
        keep = self._keep
        kept = keep(result) if type(result) is _Tensor else keep_value(keep, result)
        self._write((op, self._state.forward, kept))


class OutputOps(EveryOutput):
    """Keeps what some operations return, when nothing else was asked for."""

    shares_ops = False

    def wants(self, op: Op) -> bool:
        """Whether a pattern means it."""
        return self._records.means(op)


class CallOps(OutputOps):
    """Keeps more than what operations return, or not all of it, or stops early."""

    def __init__(
        self, owner: Owner, records: OpRecords, keep: Keep, most: int | None,
        plan: StopPlan | None,
    ) -> None:  # fmt: skip
        super().__init__(records, keep)
        self._owner = owner
        self._most = most
        self._plan = plan
        self._options = records.state.options

    def wants(self, op: Op) -> bool:
        """Whether a pattern means it; then it gets a tap."""
        if not self._records.means(op):
            return False
        record = self._records.of(op)
        add = record.entries.append if self._most is None else record.limit(self._most)
        op.data = OpTap(self._owner, record, add)
        return True

    def before(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs) -> None:
        """Notes that a call has begun."""
        if backward_id() != -1 or in_transform():
            return
        kept: tuple[Any, Any] = ((), {})
        grads = None
        if self._options.inputs:
            kept = keep_value(self._keep, (args, kwargs))
        if self._options.input_grads:
            grads = gradients(op.data, self._keep, (args, kwargs))
        op.data.begun.append(Begun(self._state.forward, *kept, grads, next_node_number()))

    def after(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, result: Any) -> None:
        """Writes down a call, with what was noted when it began."""
        tap: OpTap = op.data
        if backward_id() != -1 or in_transform():
            skip(tap.record)
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
        self.begun: Stack[Begun] = Stack()


def skip(record: Record) -> None:
    """Notes why a call is not written."""
    record.skipped = RECOMPUTED if backward_id() != -1 else TRANSFORMED
