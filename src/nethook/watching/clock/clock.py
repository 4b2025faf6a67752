"""Which step it is: a state machine that knows nothing of torch.

Hooks tell it what torch calls, one method per kind of call; it answers what that makes of the step.
Nobody else changes what it knows. These are the states of a step, for a clock that goes by
optimizers:

    call_begins, backward_begins, zeroed, ...: as often as the loop likes
        |
        v       step_begins          step_ends                       the last one
    +--------+   ---------> +--------+  ----------> +------------+  ----------> +-----+
    |  open  |              | inside |              | had a turn |              | DUE |
    +--------+ <----------  +--------+              +------------+              +-----+
      ^  ^  ^     raised,                                 |   (1)                  | end_begins
      |  |  |     weights as they were (2)                |                        v
      |  |  +---------------------------------------------+                  +-----------+
      |  |        others that take part have not stepped yet                 | UNDER_WAY |
      |  |                                                                   +-----------+
      |  +-----------------------------------------------------------------------+   |  ^
      |                   step_over: step + 1                                        +--+ (3)
      +-- step_skipped (a loss scaler left it out): as after step_ends

`inside` is `turns.inside` above 0 (2 and more: one optimizer is part of another, and only the
outermost counts), `had a turn` is `turns.taken`, `DUE` and `UNDER_WAY` are `ending`.

1. One that steps again ends the step before it begins the next: `steps_again`.
2. Torch calls no hook after a step that raised. The next call of the loop finds `inside` set and
   nothing on the stack (`loop/interrupted.py`): if weights have changed since `step_begins`,
   `step_ends` is made up for and the step counts; else it does not.
3. An interrupt while a step is being ended leaves the rest to be done: the next call of the loop
   finds `ending` set and goes on with it. Methods here are blocks of plain assignments, in which
   Python raises no interrupt: each happens as a whole or not at all.

| `kind`      | a step ends when ...                             | the clock goes by it ...        |
| ----------- | ------------------------------------------------ | ------------------------------- |
| `optimizer` | every optimizer that takes part has had its turn | from the start                  |
| `backward`  | a call with gradients begins after a backward    | after `PATIENCE` backward       |
|             | pass                                             | passes without a step, or where |
|             |                                                  | weights have moved without one  |
| `forward`   | a call with gradients begins after another       | where a run has ended without a |
|             |                                                  | backward pass                   |

A step of an optimizer brings the first kind back at any time. Recomputing a checkpointed block is
no call (hooks leave out what runs inside a backward pass), nor is a pass without gradient, which
belongs to the step that it falls into.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from nethook.watching.clock.calls import Calls
from nethook.watching.clock.gradients import Gradients
from nethook.watching.clock.pass_without_grad import PassWithoutGrad
from nethook.watching.clock.turns import NOBODY, Turns

DUE: Final = 1
UNDER_WAY: Final = 2
"""How far the end of a step has come, in `ending`: 0 where none is to be done."""

PATIENCE: Final = 32
"""Backward passes without a step of an optimizer after which each counts as a step; accumulation
may be this long before the first step."""

OPTIMIZER: Final = "optimizer"
BACKWARD: Final = "backward"
FORWARD: Final = "forward"
MEANINGS: Final = {
    OPTIMIZER: "a step of the optimizers",
    BACKWARD: "a backward pass, for no optimizer that holds the parameters has stepped",
    FORWARD: "a call of the model, for there was no backward pass",
}
"""What a step is, for each `kind` of clock."""


class Clock:
    """Counts steps.

    Arguments:
        first_step: the number of the first one; of a run that goes on, not 0.
        calls, turns: where something else keeps these, as it does for several threads.
    """

    def __init__(
        self, first_step: int = 0, *, calls: Calls | None = None, turns: Turns | None = None
    ) -> None:
        self.step = first_step
        """The step that is under way."""
        self.first_step = first_step
        self.kind = OPTIMIZER
        self.calls = calls or Calls()
        self.turns = turns or Turns()
        self.forwards = 0
        """Outermost calls with gradients, in this step."""
        self.backwards = 0
        """Backward passes in this step."""
        self.zeroes = 0
        """How often gradients were cleared in this step."""
        self.gradients = Gradients()
        self.optimizer_steps = 0
        """Steps of optimizers so far, ..."""
        self.stepped = 0
        """... and in this step."""
        self.skipped: bool | None = False
        """Whether a loss scaler leaves this step out; None where only a device knows."""
        self.ending = 0
        self.no_grad = PassWithoutGrad()
        self.totals = {"steps": 0, "forwards": 0, "backwards": 0, "evaluations": 0}

    @property
    def unfinished(self) -> bool:
        """Whether something was begun and has not ended: an exception may have cut it short."""
        return bool(self.calls.depth or self.ending or self.turns.inside)

    # -- calls and backward passes ------------------------------------------------------------

    def begins_next_step(self, patience: int) -> bool:
        """Whether a call with gradients that begins now is the first of the next step.

        Arguments:
            patience: backward passes to wait for a step of an optimizer.
        """
        if self.kind == OPTIMIZER:
            return self.optimizer_steps == 0 and self.backwards >= patience
        return bool(self.backwards if self.kind == BACKWARD else self.forwards)

    def call_begins(self) -> None:
        """An outermost call with gradients begins."""
        self.calls.called = True  # in the step that is under way from here on
        self.forwards += 1
        self.totals["forwards"] += 1

    def backward_begins(self) -> None:
        """A backward pass begins."""
        gradients = self.gradients
        gradients.since_step += 1
        gradients.unused += 1
        self.backwards += 1
        self.totals["backwards"] += 1

    def zeroed(self, by_optimizer: bool) -> int:
        """Gradients are about to be cleared; of how many passes nobody has used them."""
        self.zeroes += 1
        return self.gradients.zeroed(by_optimizer)

    # -- passes without gradient --------------------------------------------------------------

    @property
    def phase(self) -> str:
        """`train`, `eval` or `aux`: that of the call that is under way, or was last."""
        return "train" if self.calls.training else self.no_grad.phase

    def pass_begins(self) -> bool:
        """A call without gradient begins; whether it is the first of a pass."""
        return self.no_grad.begins()

    def pass_evaluates(self) -> None:
        """The pass that is under way is an evaluation."""
        self.no_grad.phase = "eval"

    def pass_ends(self) -> str:
        """Training goes on, or watching ends: what the pass was."""
        self.no_grad.open = False
        if self.no_grad.phase == "eval":
            self.totals["evaluations"] += 1
        return self.no_grad.phase

    # -- steps of optimizers ------------------------------------------------------------------

    def steps_again(self, key: int) -> bool:
        """Whether an optimizer that is about to step has had its turn in this step already."""
        return key in self.turns.taken

    def step_ends(self, key: int, gone: Collection[int] = ()) -> bool:
        """An optimizer has stepped; whether the step of the loop is over."""
        turns, gradients = self.turns, self.gradients
        if key == turns.only and not turns.taken:  # as nearly always
            over, taken = True, turns.alone
        else:
            over, taken = turns.is_last(key, gone), turns.taken | {key}
        count = turns.counts.get(key, 0) + 1
        # Nothing is called from here on: Python raises interrupts where something is.
        gradients.unused = gradients.since_step = 0
        gradients.cleared = False
        self.optimizer_steps += 1
        self.stepped += 1
        turns.counts[key] = count
        turns.taken = taken
        turns.begun = None
        turns.inside = 0
        if over:
            self.ending = DUE
        return over

    def step_skipped(self, key: int, gone: Collection[int] = ()) -> bool:
        """A loss scaler has left a step out; whether the step of the loop is over."""
        turns = self.turns
        over = turns.is_last(key, gone)
        taken = turns.taken | {key}
        self.skipped = True
        turns.taken = taken
        if over:
            self.ending = DUE
        return over

    # -- the end of a step --------------------------------------------------------------------

    def end_begins(self) -> None:
        """A step is about to be ended."""
        self.ending = UNDER_WAY

    def step_over(self) -> None:
        """Everything is done that has to be done at the end of a step: the next one begins."""
        self.totals["steps"] += 1
        self.step += 1
        self.ending = 0
        self.forwards = self.backwards = self.zeroes = self.stepped = 0
        self.skipped = False
        self.calls.called = False
        self.turns.taken = NOBODY
