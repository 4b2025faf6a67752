"""Numbers on their way to trackers: folded until it is time to send them.

The first thousand steps are windows of one step. A tracker that got each would cost more than the
steps of a small model: so points are sent some ten times a second, each the mean of what came since
the last. In a training of 100 ms per step every step is a point of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nethook.runs import names
from nethook.runs.reading.losses.curve import curve_of
from nethook.sinks.sink import EVERY
from nethook.sinks.tags import loss_tag, scalar_tag

_LOOP: Final = (names.GRAD_NORM, names.GRAD_NORM_UNCLIPPED, names.UPDATE_RATIO)


class Points:
    """What waits to be sent as one point.

    Arguments:
        every: seconds between two points; 0 for each window.
    """

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._sent = -math.inf
        self._sums: dict[str, tuple[float, float]] = {}
        self._ahead: list[tuple[int, str, float]] = []  # of steps whose window has not come yet
        self._rates: dict[str, float] = {}
        self._last: dict[str, int] = {}  # of each scalar, the last step that was taken
        self.step = -1
        """The last step whose window has come."""

    def add(self, values: Mapping[str, float], step: int, weight: float = 1.0) -> None:
        """Numbers of the steps of a window, of which this is the last."""
        for tag, value in values.items():
            self._fold(tag, value, weight)
        self.step = max(self.step, step)

    def _fold(self, tag: str, value: float, weight: float = 1.0) -> None:
        total, count = self._sums.get(tag, (0.0, 0.0))
        self._sums[tag] = total + weight * value, count + weight

    def add_scalar(self, name: str, points: Sequence[tuple[float, ...]], *, every: bool) -> None:
        """Points of a scalar; one that nobody asked for is left out.

        Arguments:
            name: of the scalar.
            points: each with its step, its time and its value, and what else it has.
            every: whether all scalars are wanted, also what the script logged by itself.
        """
        last = self._last.get(name, -1)
        fresh = [point for point in points if point[0] > last]  # after a failure some come again
        if not fresh:
            return
        self._last[name] = int(fresh[-1][0])
        loss = names.loss_of_scalar(name)
        tag, values = scalar_tag(name), [float(point[2]) for point in fresh]
        if loss is not None:
            curve = curve_of(name, *loss, [np.array(fresh, dtype=np.float64)], None)
            tag, values = loss_tag(*loss), curve.shown.tolist()
        elif name.startswith("lr:"):
            self._rates[tag] = values[-1]
            return
        elif not (name in _LOOP or (every and not names.is_own_scalar(name))):
            return
        steps = (int(point[0]) for point in fresh)
        self._ahead += [(step, tag, value) for step, value in zip(steps, values, strict=True)]

    def take(self, *, now: bool = False) -> list[tuple[int, dict[str, float]]]:
        """The point that is due, with its step; several where each window is wanted."""
        if not now and time.monotonic() - self._sent < self._every:
            return []
        if now:
            self.step = max((self.step, *(step for step, _, _ in self._ahead)))
        due = [point for point in self._ahead if point[0] <= self.step]
        self._ahead = [point for point in self._ahead if point[0] > self.step]
        taken = []
        if not self._every:  # a scalar may come later than the window of its step
            for step in sorted({point[0] for point in due} - {self.step}):
                late = {tag: value for at, tag, value in due if at == step}
                taken.append((step, {**self._rates, **late}))
            due = [point for point in due if point[0] == self.step]
        for _, tag, value in due:
            self._fold(tag, value)
        if self._sums:
            self._sent = time.monotonic()
            values = {tag: total / weight for tag, (total, weight) in self._sums.items()}
            self._sums.clear()
            taken.append((self.step, {**self._rates, **values}))
        return taken
