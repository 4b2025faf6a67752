"""The recorders that every watch has, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from nethook.watching.evaluations.scores import Scores
from nethook.watching.flight.recorder import Flight
from nethook.watching.journal import Journal
from nethook.watching.losses.recorder import Losses
from nethook.watching.losses.values import LossValues
from nethook.watching.measuring.batches import Batches
from nethook.watching.measuring.device_flags import DeviceFlags
from nethook.watching.measuring.gradient_scale import GradientScale
from nethook.watching.measuring.loop_numbers import LoopNumbers
from nethook.watching.measuring.modes import Modes
from nethook.watching.measuring.taps import Layers
from nethook.watching.recorder import Recorders


class WatchRecorders(Recorders):
    """Those by name that others ask; `attach` adds more.

    Arguments:
        journal: where all of them write.
        scale: what gradients are multiplied with.
        batches: steps whose inputs the flight recorder holds on to.
        called_alone: see `Layers`.
    """

    def __init__(
        self,
        journal: Journal,
        scale: GradientScale,
        batches: int,
        called_alone: Callable[[nn.Module, bool | None], bool],
    ) -> None:
        super().__init__()
        self.numbers = LoopNumbers(journal, self._point_of)
        self.flight = Flight(journal, batches)
        self.loss_values = LossValues(journal, self.numbers)
        self.losses = Losses(journal, self.loss_values)
        self.scores = Scores(journal, self.losses.lines.name_of)
        self.device_flags = DeviceFlags(journal, self.flight)
        self.modes = Modes(journal)
        self.batches = Batches(journal, self.numbers, self.flight)
        self.layers = Layers(journal, self.flight, scale, self.modes, called_alone)
        for recorder in (
            self.numbers, self.losses, self.loss_values, self.scores, self.flight,
            self.device_flags, self.batches,
        ):  # fmt: skip
            self.add(recorder)

    def _point_of(self, batches: list[Any]) -> tuple[float, ...] | None:
        return self.loss_values.point(batches)  # which is made after who asks for it
