"""What taps inside compiled graphs cost besides their own time.

A tensor that is shown has to be written to memory, where a fused kernel may have kept it in
registers, and that time is spent in kernels, not in nethook. So steps with taps are compared with
steps without, and the difference is held against the budget.
"""

from __future__ import annotations

import statistics
from collections import deque
from typing import Final

from nethook.watching.budget import GRADS, OUTPUTS, Budget

ENOUGH: Final = 5
"""Steps with taps, and steps without, that are compared."""

KEPT: Final = 15
"""The latest of each kind that are looked at."""


class HiddenCost:
    """Compares steps with and without taps in compiled graphs.

    Arguments:
        budget: what the difference is held against.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._seconds: tuple[deque[float], deque[float]] = (deque(maxlen=KEPT), deque(maxlen=KEPT))
        self.known = False  # whether anything was ever compiled
        self._seen = False  # whether a graph has shown anything in this step
        self._steps = 0  # with compiled code
        self._compiling: float | None = None
        self._compiled = False  # something was compiled in this step

    def shown(self) -> None:
        """A compiled graph has shown a value."""
        self.known = self._seen = True

    def compiles(self, begins: bool) -> None:
        """Torch begins to compile, or has ended: that time is neither training's nor nethook's."""
        now = self._budget.costs.now()
        self.known = self._compiled = True
        if begins:
            self._compiling = now
        elif self._compiling is not None:
            self._budget.leave_out(now - self._compiling)
            self._compiling = None

    def step_ended(self, seconds: float, own: float) -> None:
        """A step took so long, of which nethook itself took `own`."""
        with_taps, self._seen = self._seen, False
        compiled, self._compiled = self._compiled, False
        if not (with_taps or self._steps):
            return  # nothing is compiled, as far as is known
        self._budget.together = True
        self._steps += 1
        if not compiled:
            self._seconds[with_taps].append(seconds - own)
        if with_taps:
            self._budget.spent[OUTPUTS] += 0.5 * self.seconds
            self._budget.spent[GRADS] += 0.5 * self.seconds

    @property
    def seconds(self) -> float:
        """What taps cost a step in hidden time, so far as it is known."""
        without, with_taps = self._seconds
        if min(len(without), len(with_taps)) < ENOUGH:
            return 0.0
        return max(0.0, statistics.median(with_taps) - statistics.median(without))

    def without_taps(self) -> bool:
        """Whether the next step should go without taps, to be compared with."""
        without, with_taps = self._seconds
        return (
            self._budget.share is not None
            and len(without) < ENOUGH
            and len(with_taps) >= ENOUGH
            and self._steps < 8 * ENOUGH  # it may not be the graphs that are slow to come
        )
