"""Steps that no optimizer of torch makes: those of Keras, of fastai, `p -= lr * p.grad`.

Nobody tells when such a step begins or ends. It lies between a backward pass and the next call of
the model, so what it changes is read around these:

    backward_begins   weights are read
    backward_ended    gradients are read, in a loop that clears them unseen (`p.grad = None`)
    zeroed            they are about to be cleared, and nobody has read them: they are read
    step_ends         the next step begins: gradients, if they are still there; what was added
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from nethook.watching import budget
from nethook.watching.clock.clock import BACKWARD
from nethook.watching.journal import Journal
from nethook.watching.loop.held_parameters import HeldParameters
from nethook.watching.loop.moved_by_hand import MovedByHand
from nethook.watching.loop.track import is_there
from nethook.watching.measuring.loop_numbers import LoopNumbers
from nethook.watching.measuring.parameters import (
    ParametersChangedError,
    ParameterSet,
    tell_norms,
)

_now = time.perf_counter


class HandSteps:
    """Measures weights, gradients and updates where the clock goes by backward passes.

    The step in which weights are first found to have moved is over by then: the one after it is
    the first that is measured.

    Arguments:
        journal: where numbers go.
        numbers: of the loop.
        held: the parameters of the models.
    """

    def __init__(self, journal: Journal, numbers: LoopNumbers, held: HeldParameters) -> None:
        self._journal = journal
        self._numbers = numbers
        self._held = held
        self._weights = MovedByHand(held)
        self._move = False  # whether weights have moved so far
        self._waits = False  # whether the gradients of this step are still to be read
        self._passes = 1  # of the last step
        self.early = False
        """Whether gradients are gone when the next step begins: to be read after each pass."""

    def have_moved(self) -> bool:
        """Whether weights have changed since the last backward pass began."""
        moved = self._weights.have_moved()
        self._move = self._move or moved
        return moved

    def backward_begins(self) -> None:
        """A backward pass begins, and no optimizer has stepped so far."""
        self._weights.note()
        clock, schedule = self._journal.clock, self._journal.schedule
        if clock.kind == BACKWARD and self._move and not clock.backwards:
            if schedule.params:
                self._measured(budget.PARAMS, ParameterSet.weights)
            self._waits = schedule.looks

    def backward_ended(self) -> None:
        """It has run. A step may have several, as the last one had."""
        if self._waits and self._journal.clock.backwards >= self._passes:
            self._read()

    def zeroed(self) -> None:
        """Gradients are about to be cleared."""
        if self._waits:
            self._read()

    def step_ends(self) -> None:
        """The next step begins, or watching ends."""
        journal, schedule = self._journal, self._journal.schedule
        self._passes = journal.clock.backwards
        if not self._move:
            if schedule.samples:
                self.have_moved()
            return
        if self._waits:
            self._waits = False
            parameters = self._held.by_hand()
            grads = [one.grad for one in (parameters.probes if parameters is not None else ())]
            if any(grad is not None and is_there(grad) for grad in grads):
                self._read()
            else:
                self.early = True
        if schedule.params:
            self._measured(budget.PARAMS, ParameterSet.updates)
        if schedule.looks and journal.options.wants_params:
            self._measured(budget.PARAMS, ParameterSet.look, journal.clock.step)
        if schedule.looks and self._held.moved is not None:
            tell_norms(self._numbers, [self._held.moved])

    def _read(self) -> None:
        self._waits = False
        measure = self._journal.schedule.param_grads
        self._measured(budget.PARAM_GRADS, ParameterSet.gradients, 1.0, measure)

    def _measured(self, quantity: int, method: Callable[..., None], *args: Any) -> None:
        spent, start = self._journal.schedule.spent, _now()
        parameters = self._held.by_hand()
        try:
            if parameters is not None:
                method(parameters, *args)
        except ParametersChangedError:
            self._held.moved = None  # made anew for the next step
        took = _now() - start
        spent[quantity] += took
        spent[budget.OTHER] -= took  # the hook around it counts everything as other
