"""What watching may cost, what it does cost, and what is measured in which step.

A quantity is measured in every n-th step. With n = 1 everything is measured in every step; with a
larger n the quantities take turns, so that a step measures some of them; from as many as there are
quantities on, there are steps that measure none; and where n is large, so that nearly all are such,
one step measures everything, which costs less than four that measure something. n follows from what
each quantity was seen to cost and from the time of a step.
"""

from __future__ import annotations

import time
from typing import Final

# The constants fall into three groups: how much may be spent, how often the clock is looked at, and
# what is measured however little may be spent. benchmarks/watch.py shows what they do for steps of
# different lengths. Where one depends on another, its comment says so.

# -- how much may be spent ------------------------------------------------------------------------

ALLOWANCE: Final = 0.1
"""Seconds of nethook's own time that are not held against the budget.

The first steps are where most faults show (a bad start, a loss that does not fall), so a run begins
in detail: with everything in every step until this is used up. Nobody notices a tenth of a
second once in a run. The writer's thread has the same allowance for itself (`may_write`).
"""

WHOLE: Final = 1.0
"""Seconds that nethook may be above its budget for whole steps (see `GROWTH`).

Larger than `ALLOWANCE`: whole steps are rare and the only ones that show all quantities of one
step together. For a run of minutes a second is within the budget anyway, and a run of seconds
would otherwise have nothing but its beginning.
"""

LEAST_SHARE: Final = 1 / 32
"""The part of the budget that measurements get even if the fixed cost has used all of it.

Where steps are very short, counting alone (`_fixed`) may cost more than the budget. Without this
floor `every` would be `MOST` from then on.
"""

DETAIL: Final = 0.5
"""Without a budget: seconds that the writer's thread may take before windows merge, ..."""

WRITER_SHARE: Final = 0.01
"""... and the part of the training's time that it may take on top.

`budget=None` promises that everything is measured in every step, not that every step has a window
of its own. The writer's thread competes for the processor with the training, so it is bounded even
here. With a budget it gets a quarter of that instead (`may_write`).
"""

# -- how often the clock is looked at --------------------------------------------------------------

LOOK: Final = 8
"""Steps between two looks at the clock, which set `every` anew.

Costs are means over that many steps: fewer would follow the noise of single steps, more would let a
budget of 3 % be overdrawn for long when steps become shorter. The session asks the writer for its
seconds as often.
"""

LOOK_FAR: Final = 256
"""The same where hardly anything is measured (`every` above `FAR`).

A look costs time itself, which counts where steps take a fraction of a millisecond; and with
`every` above 32, most groups of 8 steps have no measurement to learn from.
"""

FAR: Final = 32
"""The value of `every` above which quantities no longer take turns but share their steps.

Below, turns keep the cost of single steps even. Above, nearly all steps measure nothing and can go
the short way (`loop/fast_path.py`); four turns would interrupt that four times, and a step that
measures everything costs less than four that measure something.
"""

# -- what is measured however little may be spent --------------------------------------------------

LOOKS: Final = 3
"""Steps in a row that look at gradients and batches although nothing is due.

Three, because a cosine between updates needs two updates in a row, which are three weights.
"""

LOOKS_EVERY: Final = 32
"""Steps from one such row to the next: norms, repeated batches and NaN are seen within that many
steps at the latest."""

LOOKS_LEAST: Final = 256
"""The same where `every` is above `FAR`: then rows are as far apart as measurements, up to this.

`every` is rounded to a multiple of it once it is above half of it, so that measurements fall into
such a row and do not need steps of their own.
"""

MOST: Final = 512
"""A quantity is measured at least once in so many steps. Twice `LOOKS_LEAST`, of which `every` is a
multiple when it is large."""

GROWTH: Final = 1.1
"""However thin the rest, everything is measured in a step that is this factor later than the last
such step, while there is time for it (`WHOLE`).

That makes a few dozen of the first thousand steps and 24 more in each tenfold: evenly spaced on a
logarithmic axis, as training curves are read, so that the course of a short run can be told.
"""

SURE: Final = 16
"""The same whatever it costs: at this step, at twice as many, and so on.

Doubling bounds the cost: 16 of the first million steps. It begins where the steps that take samples
become fewer (`next_sampled`).
"""

QUANTITIES: Final = ("outputs", "grads", "param_grads", "params")
"""What takes turns; `params` are parameters and their updates, which are measured together."""

OUTPUTS, GRADS, PARAM_GRADS, PARAMS, OTHER = range(5)
"""Positions in `spent`: the seconds that each has taken. The last is what cannot be thinned."""

PAID_BACK: Final = 128
"""Steps over which time that was overdrawn is paid back, and time that was saved is used.

Much longer than `LOOK`, so that one slow measurement does not swing `every` up and down; short
enough that a run of a thousand steps ends within its budget.
"""


# One list for all steps in which nothing is due: the session tells such steps by its identity.
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
        self.due = [quantity in wanted for quantity in QUANTITIES]
        self._wanted = list(self.due)
        self._writer_now = 0.0
        self.doctor = 0.0
        """Seconds that the doctor's looks have taken, on a thread of its own."""
        self._begun = time.perf_counter()
        self._measured = [0] * 4  # steps in which each was measured since the last look
        self._cost = [0.0] * 4  # seconds per measured step
        self._fixed = 0.0  # seconds per step that cannot be thinned
        self._step = 0.0  # seconds a step takes without nethook
        self._last = (self._begun, [0.0] * 5, 0.0)
        self._stretch = LOOK  # steps from the last look at the clock to the next
        self._until_look = LOOK
        self._turn = 0
        self._next_whole = LOOK + 1
        self._next_sure = SURE
        self.together = False  # whether outputs and gradients have the same turns
        self.looks = True
        """Whether the step has a look at what costs little."""

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
        """Own time, all threads included, relative to the time that training took by itself."""
        own = self.own + self._writer_now + self.doctor
        rest = self.elapsed - self.own
        return own / rest if rest > 0 else 0.0

    @property
    def seconds_a_step(self) -> float:
        """What a step takes by itself, at the last look."""
        return self._step

    def as_dict(self) -> dict[str, float]:
        """What watching has cost, as plain data."""
        return {
            "overhead": self.overhead,
            "seconds": self.elapsed,
            "watch_seconds": self.own,
            "writer_seconds": self._writer_now,
            "doctor_seconds": self.doctor,
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
            for quantity, due in enumerate(self.due):
                self._measured[quantity] += due
        changed = False
        self._until_look -= 1
        if self._until_look <= 0:
            changed = self._look()
            self._until_look = self._stretch = LOOK_FAR if self.every > FAR else LOOK
        self._turn += 1
        every = self.every
        if every > 1:
            turn = self._turn
            self.due = _NONE
            for quantity, wanted in enumerate(self._wanted):
                if wanted and (turn + self._offset(quantity)) % every == 0:
                    if self.due is _NONE:
                        self.due = [False] * 4
                    self.due[quantity] = True
            sure = turn >= self._next_sure
            if sure or (turn >= self._next_whole and self._has_time_for_a_whole_step()):
                self.due = list(self._wanted)
        if self._turn >= self._next_whole:
            self._next_whole = max(self._turn + 1, int(self._turn * GROWTH))
        if self._turn >= self._next_sure:
            self._next_sure = 2 * self._turn
        self.looks = self.due is not _NONE or self._turn % self._looks_every < LOOKS
        return changed

    def _offset(self, quantity: int) -> int:
        """The turns of a quantity: this many before those of the first."""
        # In a compiled graph taps are there for outputs and gradients, or for neither.
        if self.every > FAR or (self.together and quantity == GRADS):
            return 0
        return quantity * self.every // 4

    @property
    def _looks_every(self) -> int:
        return min(self.every, LOOKS_LEAST) if self.every > FAR else LOOKS_EVERY

    def still(self) -> int:
        """Steps, from the next on, in which nothing is due and nothing has to be decided."""
        every, turn = self.every, self._turn
        if every == 1:
            return 0
        first = min(self._until_look, self._next_whole - turn, self._next_sure - turn)
        first = min(first, self._looks_every - turn % self._looks_every)
        for quantity, wanted in enumerate(self._wanted):
            if wanted:
                first = min(first, every - (turn + self._offset(quantity)) % every)
        return max(0, first - 1)

    def passed(self, steps: int) -> None:
        """So many steps have ended in which nothing was due: see `still`."""
        self._turn += steps
        self._until_look -= steps

    def _has_time_for_a_whole_step(self) -> bool:
        return self.share is None or self.own < WHOLE + self.share * self.elapsed

    def _look(self) -> bool:
        now, spent = time.perf_counter(), list(self.spent)
        then, before, writer = self._last
        self._last = (now, spent, self._writer_now)
        took = [new - old for new, old in zip(spent, before, strict=True)]
        for quantity in range(4):
            if self._measured[quantity]:
                cost = took[quantity] / self._measured[quantity]
                self._cost[quantity] = (
                    cost if not self._cost[quantity] else 0.5 * (self._cost[quantity] + cost)
                )
        self._measured = [0] * 4
        self._fixed = took[OTHER] / self._stretch
        self._step = max(1e-7, (now - then - sum(took)) / self._stretch)
        if self.share is None:
            return False
        allowed = (
            self.share * self._step - self._fixed - (self._writer_now - writer) / self._stretch
        )
        if self.own + self._writer_now < ALLOWANCE + self.share * (self.elapsed - self.own) / 2:
            every = 1  # at the start there is more than enough
        else:
            beside = self._writer_now + self.doctor
            saved = self.share * (self.elapsed - self.own) + ALLOWANCE - self.own - beside
            allowed += saved / PAID_BACK
            allowed = max(allowed, self.share * self._step * LEAST_SHARE)
            total = sum(self._cost)
            every = MOST if allowed * MOST <= total else max(1, -int(-total // allowed))
        if every > LOOKS_LEAST // 2:  # so that everything is measured where there is a look anyway
            every = -(-every // LOOKS_LEAST) * LOOKS_LEAST
        before_every, self.every = self.every, min(every, MOST)
        if self.every == 1:
            self.due, self.looks = list(self._wanted), True
        # Not worth an event unless it is another order of things.
        return not 0.5 <= self.every / before_every <= 2


def next_sampled(done: int) -> int:
    """The next step after `done` that takes samples: 0 to 15, then 16 in each doubling."""
    done += 1
    between = 1 if done < 16 else 1 << (done.bit_length() - 5)
    return -(-done // between) * between
