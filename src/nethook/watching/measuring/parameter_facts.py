"""What is known of one parameter besides its numbers."""

from __future__ import annotations

from typing import Any

import torch

from nethook.runs.names import PART
from nethook.stats.shards import is_shared, local_part, part_of
from nethook.torch_private import local_of


class ParameterFacts:
    """What is known of one parameter besides its numbers."""

    __slots__ = (
        "address", "groups", "held", "local", "moved", "parameter", "part", "rows", "steps",
        "with_grad",
    )  # fmt: skip

    def __init__(self, address: str, parameter: torch.Tensor) -> None:
        self.address = address
        self.parameter = parameter
        self.settle()
        self.groups: list[tuple[str, int]] = []
        self.steps = 0  # at which its gradient was looked for
        self.with_grad = 0  # at which it had one
        self.moved = [0, 0]  # steps in which it changed, of those in which that was measured
        self.rows: dict[str, Any] = {}  # distinct ones, see `facts`

    def settle(self) -> None:
        """Looks up what of the parameter lies in this process."""
        parameter = self.parameter
        self.part = part_of(parameter)
        held = local_part(parameter)
        self.local: torch.Tensor = parameter if held is None else held
        # A sharded parameter may be given another piece of memory: then it is looked up anew.
        spread: Any = parameter
        self.held: Any = local_of(spread) if is_shared(parameter) else None

    def info(self, world: int) -> dict[str, object] | None:
        """What a reader must know to put the series of so many ranks together."""
        return {PART: list(self.part)} if world > 1 else None

    @property
    def grad(self) -> torch.Tensor | None:
        """Its gradient, as far as it lies in this process."""
        grad = self.parameter.grad
        return None if grad is None else local_part(grad)
