"""What watching may cost, what it does cost, and what is measured in which step.

A quantity is measured in every n-th step. With n = 1 everything is measured in every step; with a
larger n the quantities take turns, so that a step measures some of them; from as many as there are
quantities on, there are steps that measure none; and where n is large, so that nearly all are such,
one step measures everything, which costs less than four that measure something. n follows from what
each quantity was seen to cost and from the time of a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from nethook.watching.costs import GRADS, OTHER, OUTPUTS, PARAM_GRADS, PARAMS, Costs
from nethook.watching.estimates import Estimates

__all__ = [
    "GRADS", "OTHER", "OUTPUTS", "PARAMS", "PARAM_GRADS", "QUANTITIES", "Budget", "next_sampled",
]  # fmt: skip

# The constants fall into three groups: how much may be spent, how often the clock is looked at, and
# what is measured however little may be spent. What they do for steps of different lengths is in a
# table in docs/watch.md (tools/budget_table.py), and benchmarks/watch.py measures it. Where one
# depends on another, its comment says so.

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

Where steps are very short, counting alone (`Estimates.fixed`) may cost more than the budget.
Without this floor `every` would be `MOST` from then on.
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

Below, turns keep the cost of single steps even. Above, nearly all steps measure nothing and end
together (`Session.end_step`); four turns would interrupt that four times, and a step that measures
everything costs less than four that measure something.
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
"""A quantity is measured at least once in so many steps, or twice as many while `every` changes.
Twice `LOOKS_LEAST`, of which `every` is a multiple when it is large."""

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

PAID_BACK: Final = 128
"""Steps over which time that was overdrawn is paid back, and time that was saved is used.

Much longer than `LOOK`, so that one slow measurement does not swing `every` up and down; short
enough that a run of a thousand steps ends within its budget.

It also bounds what can be saved, to the budget of so many steps: after an hour that needed little,
nethook must not take twice its budget for half an hour.
"""

DEBT: Final = 1.0
"""Seconds that are paid back at most, besides the budget of `PAID_BACK` steps.

An hour of steps too short for the budget, in which counting alone costs more, is no reason to be
blind in the next hour. As much as whole steps may overdraw (`WHOLE`).
"""

PAID_BACK_FAR: Final = 512
"""The same where `every` is above `FAR`: twice `LOOK_FAR`. A correction that lasts longer than the
error that it corrects makes `every` swing."""


# One list for all steps in which nothing is due: the session tells such steps by its identity.
_NONE: Final = [False] * 4


class Budget:
    """Keeps nethook's own time within a share of the training's.

    Arguments:
        share: of the time that training takes by itself; None measures everything, always.
        wanted: the quantities that are measured at all.
        now: the clock, in seconds.
    """

    def __init__(
        self,
        share: float | None,
        wanted: tuple[str, ...] = QUANTITIES,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.share = share
        self.every = 1
        self.due = [quantity in wanted for quantity in QUANTITIES]
        self.looks = True
        """Whether the step has a look at what costs little."""
        self.together = False  # whether outputs and gradients have the same turns
        self.costs = Costs(now)
        self._estimates = Estimates(self.costs)
        self._wanted = list(self.due)
        self._turn = 0  # steps that have ended
        self._until_look = LOOK
        self._next_whole = LOOK
        self._next_sure = SURE
        self._saved = ALLOWANCE  # seconds below the budget at the last look; negative above it

    # -- what it has cost ---------------------------------------------------------------------

    @property
    def spent(self) -> list[float]:
        """Seconds on the training thread, by quantity; hooks add to them."""
        return self.costs.spent

    @property
    def own(self) -> float:
        """Seconds on the training thread so far."""
        return self.costs.own

    @property
    def elapsed(self) -> float:
        """Seconds since training began."""
        return self.costs.elapsed

    def in_words(self) -> str:
        """How often quantities are measured."""
        if self.every == 1:
            return "everything is measured in every step"
        return f"each quantity is measured once in {self.every} steps"

    @property
    def overhead(self) -> float:
        """What steps have cost, all threads included, relative to what training took by itself."""
        return self.costs.overhead

    @property
    def doctor(self) -> float:
        """Seconds that the doctor's looks have taken, on a thread of its own."""
        return self.costs.doctor

    @property
    def seconds_a_step(self) -> float:
        """What a step takes by itself, at the last look."""
        return self._estimates.step

    def as_dict(self) -> dict[str, float | None]:
        """What watching has cost, as plain data."""
        return {**self.costs.as_dict(), "every": self.every}

    def started(self, seconds: float) -> None:
        """To put the watch on has taken so many seconds."""
        self.costs.started(seconds)
        self._estimates.training_begins()

    def training_begins(self) -> None:
        """The first call of a watched model: what was before it was not training."""
        self.costs.training_begins()
        self._estimates.training_begins()

    def training_ends(self) -> None:
        """The watch is about to be closed."""
        self.costs.training_ends()

    def closed(self, seconds: float) -> None:
        """To close the watch has taken so many seconds."""
        self.costs.closing += seconds

    def writer_took(self, seconds: float) -> None:
        """The writer's thread has used so many seconds of the processor."""
        self.costs.writer = seconds

    def doctor_took(self, seconds: float) -> None:
        """A look of the doctor's has taken so many seconds of the processor."""
        self.costs.doctor += seconds

    def leave_out(self, seconds: float) -> None:
        """So much time was neither training's nor nethook's: compiling, or standing still."""
        self.costs.leave_out(seconds)
        self._estimates.leave_out(seconds)

    def may_write(self) -> bool:
        """Whether a window may be handed over now; otherwise it goes on and grows."""
        costs = self.costs
        if self.share is None:
            return costs.writer <= DETAIL + WRITER_SHARE * costs.elapsed
        return costs.writer <= ALLOWANCE + self.share / 4 * costs.elapsed

    # -- what is due --------------------------------------------------------------------------

    def step_ended(self) -> bool:
        """Decides what the next step measures; whether `every` changed."""
        self._estimates.steps_ended(1, None if self.due is _NONE else self.due)
        changed = False
        self._until_look -= 1
        if self._until_look <= 0:
            changed = self._look()
            self._until_look = LOOK_FAR if self.every > FAR else LOOK
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
        self._estimates.steps_ended(steps)
        self._turn += steps
        self._until_look -= steps

    def _has_time_for_a_whole_step(self) -> bool:
        return self.share is None or self._saved_now() > -WHOLE

    def _saved_now(self) -> float:
        """Seconds below the budget, or above it if negative."""
        assert self.share is not None
        training, cost = self._estimates.since_look()
        return self._saved + self.share * training - cost

    def _look(self) -> bool:
        costs, known = self.costs, self._estimates
        if self.share is not None:
            self._saved = self._saved_now()
        known.look()
        if costs.in_opening and costs.own + costs.writer >= ALLOWANCE:
            costs.opening_ends()
        costs.looked_at()
        if self.share is None:
            return False
        before, self.every = self.every, 1 if costs.in_opening else self._affordable(self.share)
        if self.every == 1:
            self.due, self.looks = list(self._wanted), True
        # Not worth an event unless it is another order of things.
        return not 0.5 <= self.every / before <= 2

    def _affordable(self, share: float) -> int:
        """The `every` that the budget has room for, by what was seen to cost how much."""
        known = self._estimates
        spare = share * known.step * PAID_BACK
        self._saved = max(-DEBT - spare, min(self._saved, spare))
        paid_back = PAID_BACK if self.every <= FAR else PAID_BACK_FAR
        allowed = share * known.step - known.fixed + self._saved / paid_back
        allowed = max(allowed, share * known.step * LEAST_SHARE)
        measured = sum(known.quantities)
        # One window for each of the steps in which quantities take turns, or one for all of them.
        every = _times(measured + sum(self._wanted) * known.written, allowed)
        if every > FAR:
            every = max(FAR + 1, _times(measured + known.written, allowed))
        if every > LOOKS_LEAST // 2:  # so that everything is measured where there is a look anyway
            every = -(-every // LOOKS_LEAST) * LOOKS_LEAST
        return min(every, MOST)


def _times(cost: float, allowed: float) -> int:
    """Steps that together are allowed so much; at most `MOST`."""
    return MOST if allowed * MOST <= cost else max(1, -int(-cost // allowed))


def next_sampled(done: int) -> int:
    """The next step after `done` that takes samples: 0 to 15, then 16 in each doubling."""
    done += 1
    between = 1 if done < 16 else 1 << (done.bit_length() - 5)
    return -(-done // between) * between
