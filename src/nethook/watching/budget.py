"""What watching may cost, what it does cost, and what is measured in which step.

A quantity is measured in every n-th step. With n = 1 everything is measured in every step; with a
larger n the quantities take turns, so that a step measures some of them; from as many as there are
quantities on, there are steps that measure none. n follows from what each quantity was seen to cost
and from the time of a step.
"""

from __future__ import annotations

import time
from typing import Final

ALLOWANCE: Final = 0.1
"""Seconds of nethook's own time that are not held against the budget: a run begins in detail."""

DETAIL: Final = 0.5
"""Without a budget: seconds that the writer's thread may take before windows merge."""

LOOK: Final = 8
"""Steps between two looks at the clock."""

MOST: Final = 512
"""A quantity is measured at least once in so many steps."""

GROWTH: Final = 1.1
"""However thin the rest, everything is measured in a step that is so much later than the last such
(a few dozen of the first thousand steps), so that the course of a short run can be told, ..."""

WHOLE: Final = 1.0
"""... while nethook's own time is no more than so many seconds above its budget; ..."""

SURE: Final = 16
"""... and, whatever it costs, at this step, at twice as many, and so on."""

WRITER_SHARE: Final = 0.01
"""Without a budget: the part of the time that the writer's thread may take, by merging windows."""

QUANTITIES: Final = ("outputs", "grads", "param_grads", "params")
"""What takes turns; `params` are parameters and their updates, which are measured together."""

OUTPUTS, GRADS, PARAM_GRADS, PARAMS, OTHER = range(5)
"""Places in `spent`: seconds that each has taken. The last is what cannot be thinned."""


_NONE: Final = [False] * 4


class Budget:
    """Keeps nethook's own time within a share of the training's.

    Arguments:
        share: of the time that training takes by itself; None measures everything, always.
        wanted: the quantities that are measured at all.
    """

    def __init__(self, share: float | None, wanted: tuple[str, ...] = QUANTITIES) -> None:
        self.share = share
        self.every = 1
        self.spent = [0.0] * 5
        self.due = [each in wanted for each in QUANTITIES]
        self._wanted = list(self.due)
        self._writer_now = 0.0
        self._begun = time.perf_counter()
        self._measured = [0] * 4  # steps in which each was measured since the last look
        self._cost = [0.0] * 4  # seconds a measured step
        self._fixed = 0.0  # seconds a step that cannot be thinned
        self._step = 0.0  # seconds a step takes without nethook
        self._last = (self._begun, [0.0] * 5, 0.0)
        self._until_look = LOOK
        self._turn = 0
        self._next_whole = LOOK + 1
        self._next_sure = SURE
        self.together = False  # whether outputs and gradients have the same turns

    # -- what it has cost ---------------------------------------------------------------------

    @property
    def own(self) -> float:
        """Seconds on the training thread so far."""
        return sum(self.spent)

    @property
    def elapsed(self) -> float:
        """Seconds since watching began."""
        return time.perf_counter() - self._begun

    @property
    def overhead(self) -> float:
        """Own time, the writer's included, relative to the time that training took by itself."""
        own = self.own + self._writer_now
        rest = self.elapsed - self.own
        return own / rest if rest > 0 else 0.0

    def as_dict(self) -> dict[str, float]:
        """What watching has cost, as plain data."""
        return {
            "overhead": self.overhead,
            "seconds": self.elapsed,
            "watch_seconds": self.own,
            "writer_seconds": self._writer_now,
            "every": self.every,
        }

    def writer_took(self, seconds: float) -> None:
        """The writer's thread has used so many seconds of the processor."""
        self._writer_now = seconds

    def leave_out(self, seconds: float) -> None:
        """So much time was neither training's nor nethook's: compiling, or standing still."""
        then, spent, writer = self._last
        self._begun += seconds
        self._last = (then + seconds, spent, writer)

    def may_write(self) -> bool:
        """Whether a window may be handed over now; otherwise it goes on and grows."""
        if self.share is None:
            return self._writer_now <= DETAIL + WRITER_SHARE * self.elapsed
        return self._writer_now <= ALLOWANCE + self.share / 4 * self.elapsed

    # -- what is due --------------------------------------------------------------------------

    def step_ended(self, spare: bool = True) -> bool:
        """Decides what the next step measures; whether `every` changed."""
        if self.due is not _NONE:
            for at, due in enumerate(self.due):
                self._measured[at] += due
        changed = False
        self._until_look -= 1
        if self._until_look <= 0:
            self._until_look = LOOK
            changed = self._look()
        self._turn += 1
        every = self.every
        if every > 1:
            turn = self._turn
            # The quantities are spread over the turns: 0, every/4, every/2, …
            self.due = _NONE
            for at, wanted in enumerate(self._wanted):
                # In a compiled graph taps are there for outputs and gradients, or for neither.
                place = OUTPUTS if self.together and at == GRADS else at
                if wanted and (turn + place * every // 4) % every == 0:
                    if self.due is _NONE:
                        self.due = [False] * 4
                    self.due[at] = True
            sure = turn >= self._next_sure
            if sure or (turn >= self._next_whole and self._has_time_for_a_whole_step()):
                self.due = list(self._wanted)
        if self._turn >= self._next_whole:
            self._next_whole = max(self._turn + 1, int(self._turn * GROWTH))
        if self._turn >= self._next_sure:
            self._next_sure = 2 * self._turn
        return changed

    def _has_time_for_a_whole_step(self) -> bool:
        return self.share is None or self.own < WHOLE + self.share * self.elapsed

    def all_due(self) -> None:
        """Measures everything in this step, whatever it costs."""
        self.due = list(self._wanted)

    def _look(self) -> bool:
        now, spent = time.perf_counter(), list(self.spent)
        then, before, writer = self._last
        self._last = (now, spent, self._writer_now)
        took = [new - old for new, old in zip(spent, before, strict=True)]
        for at in range(4):
            if self._measured[at]:
                cost = took[at] / self._measured[at]
                self._cost[at] = cost if not self._cost[at] else 0.5 * (self._cost[at] + cost)
        self._measured = [0] * 4
        self._fixed = took[OTHER] / LOOK
        self._step = max(1e-7, (now - then - sum(took)) / LOOK)
        if self.share is None:
            return False
        allowed = self.share * self._step - self._fixed - (self._writer_now - writer) / LOOK
        if self.own + self._writer_now < ALLOWANCE + self.share * (self.elapsed - self.own) / 2:
            every = 1  # at the start there is more than enough
        else:
            # What was overdrawn is paid back over some hundred steps, and what was saved is used.
            saved = self.share * (self.elapsed - self.own) + ALLOWANCE - self.own - self._writer_now
            allowed += saved / 128
            # However much was overdrawn, a run is never without measurements for long.
            allowed = max(allowed, self.share * self._step / 8)
            total = sum(self._cost)
            every = MOST if allowed * MOST <= total else max(1, -int(-total // allowed))
        before_every, self.every = self.every, min(every, MOST)
        if self.every == 1:
            self.due = list(self._wanted)
        # Not worth an event unless it is another order of things.
        return not 0.5 <= self.every / before_every <= 2
