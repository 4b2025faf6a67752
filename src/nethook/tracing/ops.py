"""Tracing operations: what each gives is written into its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.torch_private import backward_id, dispatch_modes, function_modes, in_transform
from nethook.tracing.early_stop import StopPlan
from nethook.tracing.keep import Keeper, keep_value
from nethook.tracing.tape.entry import Entry, Stack
from nethook.tracing.tape.op_records import OpRecords
from nethook.tracing.tape.record import Record
from nethook.tracing.taps import Add, begin, finish, skip

_Tensor = torch.Tensor

_Function = Callable[..., Any]
_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]


class EveryOutput(OpConsumer):
    """Keeps what all operations return, when nothing else was asked for."""

    shares_ops = True

    def __init__(self, records: OpRecords, keep: Keeper) -> None:
        self._records = records
        self._keep = keep
        self._plainly = keep.plainly
        self._state = records.state
        self._write = records.log.append

    def after(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, result: Any) -> None:
        """Writes down a call."""
        if backward_id() != -1 or in_transform():
            skip(self._records.of(op))
            return
        if type(result) is _Tensor and not function_modes() and not dispatch_modes():
            kept = self._plainly(result)
        else:
            kept = keep_value(self._keep, result)
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
        self, owner: Owner, records: OpRecords, keep: Keeper, most: int | None,
        plan: StopPlan | None,
    ) -> None:  # fmt: skip
        super().__init__(records, keep)
        self._owner = owner
        self._most = most
        self._plan = plan

    def wants(self, op: Op) -> bool:
        """Whether a pattern means it; then it gets a tap."""
        if not self._records.means(op):
            return False
        record = self._records.of(op)
        op.data = OpTap(self._owner, record, record.writer(self._most))
        return True

    def before(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs) -> None:
        """Notes that a call has begun."""
        if backward_id() != -1 or in_transform():
            return
        op.data.begun.append(begin(op.data, self._state, self._keep, args, kwargs))

    def after(self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, result: Any) -> None:
        """Writes down a call, with what was noted when it began."""
        tap: OpTap = op.data
        if backward_id() != -1 or in_transform():
            skip(tap.record)
            return
        entry = tap.begun.pop()
        tap.add(finish(tap, self._state, self._keep, entry, args, kwargs, result))
        if self._plan is not None:
            self._plan.saw(tap.address)

    def failed(
        self, op: Op, function: _Function, args: _Args, kwargs: _Kwargs, error: BaseException
    ) -> None:
        """Writes down a call that raised."""
        tap: OpTap = op.data
        if tap.begun:
            tap.add(tap.begun.pop())


class OpTap(Hook):
    """Where the calls of one operation are written."""

    __slots__ = ("add", "begun", "record")

    def __init__(self, owner: Owner, record: Record, add: Add) -> None:
        super().__init__(owner, record.address)
        self.record = record
        self.add = add
        self.begun: Stack[Entry] = Stack()
