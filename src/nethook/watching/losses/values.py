"""The values of losses: each is folded into its series, and the mean of a step is a point."""

from __future__ import annotations

import math

import torch

from nethook.runs import names
from nethook.watching.protocols import LossSession


class LossValues:
    """The values of the step that is under way."""

    def __init__(self, session: LossSession) -> None:
        self._session = session
        self.rows: dict[str, int] = {}
        """The row of each loss that has one."""
        self.sums: dict[str, list[float]] = {}
        """What each loss was in this step, pass by pass."""
        self.some = False
        """Whether there are any."""
        self._names: list[str] = list(session.writer.earlier.get("losses") or ())

    def add(self, name: str, value: torch.Tensor | float) -> None:
        """One value of a loss, in training."""
        session = self._session
        row = self.rows.get(name)
        if row is None:
            if name not in self._names:
                self._names.append(name)
                session.writer.info(losses=list(self._names))
            row = session.row(names.loss_address(name), names.LOSS)
            if row is None:
                return
            session.train.slot(row)
            self.rows[name], self.sums[name] = row, []
        if isinstance(value, torch.Tensor):
            session.train.slots[row].fold(value)
            session.pending.add(names.loss_name(name), value, keep=names.KEPT_STEPS)
            return
        session.numbers.number(row, value)
        self.sums[name].append(value)
        self.some = True

    def take(self) -> list[tuple[str, float]]:
        """The mean of each loss of this step, which is over."""
        means = []
        self.some = False
        for name, values in self.sums.items():
            if values:
                mean = math.fsum(values) / len(values) if len(values) > 1 else values[0]
                means.append((name, mean))
                values.clear()
        return means

    def step_ended(self, step: int) -> None:
        """The mean of each loss is a point."""
        for name, mean in self.take():
            point = names.loss_name(name)
            self._session.writer.log(point, mean, step, keep=names.KEPT_STEPS)
