"""What a step takes by itself, and what each quantity adds to it: means of the latest steps."""

from __future__ import annotations

from typing import Final

from nethook.watching.costs import OTHER, Costs

LATEST: Final = 0.5
"""The weight of the latest mean; the rest is what was known before.

A mean may be of one or two measurements, or of eight steps of which three took a closer look: with
half of it, one slow step counts for half, and four looks forget it.
"""


KEPT: Final = 0.9
"""The part that each look keeps of what is known of the writer's thread.

It works in bursts, long after the measurements that it writes: its cost per measurement is a mean
over about ten looks.
"""


class Estimates:
    """What is known of the cost of a step, as of the last look at the clock.

    Arguments:
        costs: what is looked at.
    """

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self.quantities = [0.0] * 4
        """Seconds that each adds to a step that measures it."""
        self.fixed = 0.0
        """Seconds per step on the training thread that cannot be thinned."""
        self.step = 0.0
        """Seconds that a step takes without nethook."""
        self._writer = (0.0, 0.0)  # its seconds, and the steps whose measurements it wrote
        # Since the last look: all steps, those that measured anything, and those of each quantity.
        self._steps = [0, 0]
        self._measured = [0] * 4
        self._last = _State(costs)

    @property
    def written(self) -> float:
        """Seconds that the writer's thread takes for a step that measured anything."""
        seconds, steps = self._writer
        return seconds / max(1.0, steps)

    def steps_ended(self, steps: int, due: list[bool] | None = None) -> None:
        """So many steps have ended, in which this was measured."""
        self._steps[0] += steps
        if due is not None:
            self._steps[1] += steps
            for quantity, measured in enumerate(due):
                self._measured[quantity] += measured

    def leave_out(self, seconds: float) -> None:
        """So much time since the last look was neither training's nor nethook's."""
        self._last.time += seconds

    def training_begins(self) -> None:
        """Nothing before this was training."""
        self._last = _State(self._costs)

    def since_look(self) -> tuple[float, float]:
        """Seconds since the last look: training's own, and what watching has cost."""
        now, then = _State(self._costs), self._last
        return now.time - then.time - (sum(now.spent) - sum(then.spent)), now.steps - then.steps

    def look(self) -> None:
        """Takes the means of the steps since the last look, of which there is at least one."""
        now, then = _State(self._costs), self._last
        self._last = now
        took = [new - old for new, old in zip(now.spent, then.spent, strict=True)]
        for quantity, times in enumerate(self._measured):
            if times:
                known = self.quantities[quantity]
                self.quantities[quantity] = _latest(took[quantity] / times, known)
        # All of it counts as the cost of measurements. Points of a loss are written for the other
        # steps, too; where that matters, the mean over all steps is right all the same.
        steps, measuring = self._steps
        seconds, before = self._writer
        self._writer = (KEPT * seconds + now.writer - then.writer, KEPT * before + measuring)
        self.fixed = _latest(took[OTHER] / steps, self.fixed)
        self.step = _latest(max(1e-7, (now.time - then.time - sum(took)) / steps), self.step)
        self._steps, self._measured = [0, 0], [0] * 4


def _latest(mean: float, known: float) -> float:
    return LATEST * mean + (1 - LATEST) * known if known else mean


class _State:
    """What the costs are at one moment."""

    __slots__ = ("spent", "steps", "time", "writer")

    def __init__(self, costs: Costs) -> None:
        self.time = costs.now()
        self.spent = list(costs.spent)
        self.writer = costs.writer
        self.steps = costs.steps
