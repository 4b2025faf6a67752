"""What each file of this room needs of the session, and no more."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from nethook.runs.writing.writer import RunWriter
from nethook.stats.transfers import Done
from nethook.watching.budget import Budget
from nethook.watching.fail_open import Guarded
from nethook.watching.protocols import Events, Points
from nethook.watching.series import Catalogue


class OpsSession(Guarded, Protocol):
    """For `facts.op_order`."""

    depth: int
    forwards: int
    training: bool
    writer: RunWriter
    on_step: list[Any]
    op_lists: dict[str, Any]


class Asked(Protocol):
    """`device_flags`, as `facts` uses it."""

    def put(self, vector: torch.Tensor, done: Done) -> None:
        """Hands numbers on when they are known."""


class PassEnds(Protocol):
    """`clock.passes.Passes`, as `facts` uses it."""

    on_end: list[Any]


class FactsSession(Events, Protocol):
    """For `facts.facts`."""

    first_step: int
    samples: bool
    snapshot_cap: int
    totals: dict[str, int]
    budget: Budget
    catalogue: Catalogue
    on_step: list[Any]
    on_window: list[Any]
    on_gradients: list[Any]

    @property
    def pending(self) -> Points:
        """Scalars that are still on a device."""

    @property
    def device_flags(self) -> Asked:
        """What devices tell later."""

    @property
    def passes(self) -> PassEnds:
        """Passes without gradient."""

    def write_facts(self) -> None:
        """Brings sites and totals in the file up to date; `facts` puts itself in its place."""
