"""The values of losses: each is folded into its series, and the mean of a step is a point."""

from __future__ import annotations

import math
from typing import Protocol

import torch

from nethook.runs import names
from nethook.watching.journal import Journal


class Points(Protocol):
    """Scalars that are still on a device: `measuring.loop_numbers.Pending`."""

    def add(self, name: str, value: torch.Tensor, *, keep: int = 0) -> None:
        """A scalar of this step; it is a point in the log once it is known."""


class Numbers(Protocol):
    """The numbers of the step that is under way: `measuring.loop_numbers.LoopNumbers`."""

    @property
    def pending(self) -> Points:
        """Scalars that are still on a device."""

    def number(self, row: int, value: float) -> None:
        """One number of a row."""


class LossValues:
    """The values of the step that is under way."""

    def __init__(self, journal: Journal, numbers: Numbers) -> None:
        self._journal = journal
        self._numbers = numbers
        self.rows: dict[str, int] = {}
        """The row of each loss that has one."""
        self.sums: dict[str, list[float]] = {}
        """What each loss was in this step, pass by pass."""
        self._names: list[str] = list(journal.writer.earlier.get("losses") or ())

    def add(self, name: str, value: torch.Tensor | float, phase: str) -> None:
        """One value of a loss, unscaled; a tensor stays on its device until the window ends."""
        if phase == "train":
            self._trained(name, value)
        else:
            self._evaluated(name, value)

    def _evaluated(self, name: str, value: torch.Tensor | float) -> None:
        row = self._journal.row(names.loss_address(name), names.LOSS)
        if row is None:
            return
        sheet = self._journal.off
        slot = sheet.rows.slots.get(row) or sheet.slot(row)
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(value, dtype=torch.float64)
        slot.fold(value)

    def _trained(self, name: str, value: torch.Tensor | float) -> None:
        journal = self._journal
        row = self.rows.get(name)
        if row is None:
            if name not in self._names:
                self._names.append(name)
                journal.writer.info(losses=list(self._names))
            row = journal.row(names.loss_address(name), names.LOSS)
            if row is None:
                return
            journal.train.slot(row)
            self.rows[name], self.sums[name] = row, []
        if isinstance(value, torch.Tensor):
            journal.train.rows.slots[row].fold(value)
            self._numbers.pending.add(names.loss_name(name), value, keep=names.KEPT_STEPS)
            return
        self._numbers.number(row, value)
        self.sums[name].append(value)

    def take(self) -> list[tuple[str, float]]:
        """The mean of each loss of this step, which is over."""
        means = []
        for name, values in self.sums.items():
            if values:
                mean = math.fsum(values) / len(values) if len(values) > 1 else values[0]
                means.append((name, mean))
                values.clear()
        return means
