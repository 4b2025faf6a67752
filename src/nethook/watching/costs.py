"""The seconds that watching takes: who took them, and in which part of the run.

    watch() ......... first call ............ allowance used ............ close() .... written
            start-up              opening                      steady            closing

Start-up is what the call of `watch` takes: looking at the model, opening the file, putting hooks
on. In the opening everything is measured in every step; it ends when the budget decides for the
first time what a step measures. The rest is steady. Closing is what the script waits for at the
end: the rest is written, and the doctor looks at all of it.

A further step costs what the later ones have cost: whole steps, in which everything is measured,
become rarer all the time. So `steady_overhead` goes by the last half to three quarters of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable

OUTPUTS, GRADS, PARAM_GRADS, PARAMS, OTHER = range(5)
"""Positions in `spent`: the seconds that each has taken. The last is what cannot be thinned."""


class Costs:
    """What watching has cost so far.

    Arguments:
        now: the clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.now = now
        self.spent = [0.0] * 5
        """Seconds on the training thread; hooks add to them."""
        self.writer = 0.0
        """Seconds of the processor that the writer's thread has used."""
        self.doctor = 0.0
        """Seconds that the doctor's looks have taken, on a thread of its own."""
        self.start_up = 0.0
        self.closing = 0.0
        self._begun = now()
        self._ended: float | None = None
        # At the end of the opening: what watching had cost until then, and what training had taken.
        self._opening: tuple[float, float] | None = None
        # The same at the last two moments at which training had taken twice as long as before.
        self._later: tuple[tuple[float, float], tuple[float, float]] | None = None

    @property
    def own(self) -> float:
        """Seconds on the training thread so far, after start-up."""
        return sum(self.spent)

    @property
    def steps(self) -> float:
        """Seconds of all threads so far, without start-up and closing."""
        return self.own + self.writer + self.doctor

    @property
    def total(self) -> float:
        """Seconds in all."""
        return self.start_up + self.steps + self.closing

    @property
    def elapsed(self) -> float:
        """Seconds since training began, until it ended."""
        return (self.now() if self._ended is None else self._ended) - self._begun

    @property
    def training(self) -> float:
        """Seconds that training took by itself."""
        return self.elapsed - self.own

    @property
    def overhead(self) -> float:
        """What steps have cost, all threads included, relative to what training took by itself."""
        return _ratio(self.steps, self.training)

    @property
    def opening(self) -> float:
        """What the steps of the opening have cost, in seconds."""
        return self.steps if self._opening is None else self._opening[0]

    @property
    def steady(self) -> float:
        """What the steps after the opening have cost, in seconds."""
        return self.steps - self.opening

    @property
    def steady_overhead(self) -> float | None:
        """What a further step costs relative to training by itself; None if all was opening."""
        if self._later is None:
            return None
        (steps, before), _ = self._later
        training = self.training - before
        return _ratio(self.steps - steps, training) if training > 0 else None

    def started(self, seconds: float) -> None:
        """To put the watch on has taken so many seconds."""
        self.start_up = seconds
        self.training_begins()

    def training_begins(self) -> None:
        """What has passed until now (loading data, say) is not training's time."""
        self._begun = self.now()

    def training_ends(self) -> None:
        """What passes from now on is closing."""
        if self._ended is None:
            self._ended = self.now()

    def leave_out(self, seconds: float) -> None:
        """So much time was neither training's nor watching's: compiling, examining, standing still.

        After the end of training it is none of closing's.
        """
        if self._ended is None:
            self._begun += seconds
        else:
            self.closing -= seconds

    @property
    def in_opening(self) -> bool:
        """Whether this is still the opening."""
        return self._opening is None

    def opening_ends(self) -> None:
        """The budget has decided for the first time; later calls do nothing."""
        if self._opening is None:
            self._opening = (self.steps, self.training)
            self._later = self._opening, self._opening

    def looked_at(self) -> None:
        """The budget looks at the clock again: has training taken twice as long by now?"""
        if self._later is not None and self.training >= 2 * self._later[1][1]:
            self._later = self._later[1], (self.steps, self.training)

    def as_dict(self) -> dict[str, float | None]:
        """What watching has cost, as plain data."""
        return {
            "overhead": self.overhead,
            "seconds": self.elapsed,
            "watch_seconds": self.own,
            "writer_seconds": self.writer,
            "doctor_seconds": self.doctor,
            "start_up_seconds": self.start_up,
            "opening_seconds": self.opening,
            "steady_seconds": self.steady,
            "closing_seconds": self.closing,
            "total_seconds": self.total,
            "steady_overhead": self.steady_overhead,
        }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
