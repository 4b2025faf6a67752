"""What is measured in which step: the budget decides, and is asked once per step.

Whatever measures reads `outputs`, `grads`, `param_grads`, `params`, `looks` and `samples`, which
hold for the step that is under way. Where nothing is due for a while, nothing is decided either:
steps up to `until` are ended together (`Session.end_step`), and hooks that have nothing to do in
them are taken off their modules.
"""

from __future__ import annotations

from typing import Final

from nethook.hooks.attachment import Resting, seconds_of_a_hook
from nethook.hooks.compile.graph import shown
from nethook.watching.budget import GRADS, OUTPUTS, QUANTITIES, Budget, next_sampled
from nethook.watching.compiled_cost import HiddenCost

LONGEST: Final = 1.0
"""Seconds until a step is ended whose neighbours have nothing due either: that is how old what a
reader sees may be, and what an interrupt or a kill may cost."""


class Schedule:
    """Says what is due in the step that is under way.

    Arguments:
        share: of the training's time that watching may take; None measures everything, always.
        wanted: the quantities that are measured at all.
        first_step: of this watch.
    """

    def __init__(
        self, share: float | None, wanted: tuple[str, ...] = QUANTITIES, first_step: int = 0
    ) -> None:
        thinned = {quantity for quantity in QUANTITIES if quantity in wanted}
        if "updates" in wanted:  # which are measured together with the weights
            thinned.add("params")
        self.budget = Budget(share, tuple(thinned))
        self.hidden = HiddenCost(self.budget)
        self.spent = self.budget.spent
        self.hook_seconds = seconds_of_a_hook()
        """What a hook costs that it cannot see by itself."""
        self.resting: Resting | None = None
        """The hooks on layers, where they may be taken off for a while."""
        self.samples = True
        """Whether this step takes samples: 0 to 15, then 16 in each doubling."""
        self.until = 0
        """The first step that is decided anew: what comes before has nothing due."""
        self._first = first_step
        self._decided = first_step
        self._awake_for: set[str] = set()
        self._nothing: list[bool] | None = None  # what was due at the last decision, if nothing
        self.outputs = self.grads = self.param_grads = self.params = False
        self.looks = self.quiet = False
        self._decide(first_step)

    @property
    def measures(self) -> bool:
        """Whether this step is one that measures something, as all do that are not thinned."""
        return self.budget.every == 1 or self._nothing is None

    def step_ended(self, step: int, writer_seconds: float) -> bool:
        """Decides what the next step measures; whether quantities are thinned otherwise now.

        Arguments:
            step: the one that has ended.
            writer_seconds: of the processor, that the writer's thread has used so far.
        """
        budget, following = self.budget, step + 1
        passed = following - self._decided - 1
        self._decided = following
        if passed > 0:
            budget.passed(passed)
        budget.writer_took(writer_seconds)
        changed = budget.step_ended()
        done = following - self._first
        self.samples = next_sampled(done - 1) == done
        self._decide(following)
        return changed

    def _decide(self, step: int) -> None:
        due = self.budget.due
        if self.hidden.known and self.hidden.without_taps():
            due = list(due)
            due[OUTPUTS] = due[GRADS] = False
        if due is not self._nothing:  # else nothing is due, as in the step before
            self._nothing = None if any(due) else due
            self.outputs, self.grads, self.param_grads, self.params = due
            self.rest_or_wake()
            shown.ask(self, self.outputs or self.grads)
        self.looks = self.budget.looks
        self.quiet = not (self.looks or self.samples)
        # What compiled graphs hide is told from step to step.
        self.until = self._next_due(step) if self.quiet and not self.hidden.known else 0

    def _next_due(self, step: int) -> int:
        sampled = self._first + next_sampled(step - self._first)
        soon = max(1, int(LONGEST / max(self.budget.seconds_a_step, 1e-6)))
        return min(sampled, step + self.budget.still() + 1, step + soon)

    # -- hooks that rest ----------------------------------------------------------------------

    def keep_awake(self, reason: str, whether: bool = True) -> None:
        """Whether hooks on layers are needed in every step, for this reason."""
        if whether is (reason in self._awake_for):
            return
        (self._awake_for.add if whether else self._awake_for.discard)(reason)
        self._nothing = None  # so that it is decided anew

    def finish(self) -> None:
        """Watching ends: no step waits for its neighbours any more."""
        self.until = 0

    def rest_or_wake(self) -> None:
        """Hooks on layers have nothing to do where neither outputs nor gradients are due."""
        if self.resting is not None:
            if self.outputs or self.grads or self._awake_for:
                self.resting.wake()
            else:
                self.resting.rest()

    def wake(self) -> None:
        """Something is about to be called that hooks on layers must see."""
        if self.resting is not None:
            self.resting.wake()
