"""What a tape holds of one operation."""

from __future__ import annotations

from collections.abc import Sequence

from nethook.addresses.op_addresses import OpPattern
from nethook.errors import NotRunError
from nethook.hooks.ops.missing import why_no_op
from nethook.tracing.entry import State
from nethook.tracing.record import Record


class OpRecord(Record):
    """What a tape holds of one operation: read as that of a module."""

    def __init__(
        self, state: State, address: str, names: Sequence[str], modules: Sequence[str],
        name: str, k: int,
    ) -> None:  # fmt: skip
        super().__init__(state, address, names, "op")
        self.modules = modules  # the names of its module, its address first
        self.name = name
        self.k = k

    def is_meant_by(self, pattern: OpPattern) -> bool:
        """Whether a pattern means it."""
        return pattern.matches(self.name, self.k) and pattern.means_module(self.modules)

    def why_not_run(self) -> NotRunError:
        """The error for an operation that was not met."""
        why = why_no_op(self.state.met, self.modules[0], self.name)
        return NotRunError(f"{self.address!r} has not run in this scope: {why}")
