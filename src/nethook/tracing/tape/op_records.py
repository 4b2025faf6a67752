"""What a tape holds of operations: each that a pattern means gets a record when it first runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nethook.addresses.op_addresses import OpPattern, op_address
from nethook.addresses.tree import Tree
from nethook.errors import NotRunError
from nethook.hooks.ops.consumer import Op
from nethook.hooks.ops.missing import why_no_op
from nethook.tracing.tape.record import OpName, Record
from nethook.tracing.tape.state import State


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

    def _named(self, modules: tuple[str, ...], name: str, k: int) -> Record:
        names = [op_address(module, name, k) for module in modules]
        record = Record(self.state, names[0], names, "op", OpName(modules, name, k))
        self._records.setdefault(record.address, record)
        return record

    @property
    def records(self) -> dict[str, Record]:
        """All records by address. Those of operations are made when they are first read."""
        # Not `clear`: another thread may add a call between the two lines.
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
        record = self._records.get(op.address)
        return self._named(op.place.names, op.name, op.k) if record is None else record

    @property
    def open_ended(self) -> bool:
        """Whether only a forward tells how many operations the patterns mean."""
        return any(pattern.one is None or pattern.every_module for pattern in self.patterns)

    def find(self, text: str) -> list[Record]:
        """The records that a pattern means."""
        pattern = OpPattern(text)
        records = self.records.values()
        return [record for record in records if record.op and record.op.is_meant_by(pattern)]

    def why_none(self, text: str) -> NotRunError | None:
        """Why there is no record for a pattern that was asked for; None where it was not."""
        pattern = OpPattern(text)
        module = self._first.get(text, pattern.only_module)
        asked = any(rule.text == text for rule in self.patterns)
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
