"""What an exception has cut short: noticed, told in the run, and brought to an end.

A loop may catch an exception and go on: a batch that is too large, Ctrl-C in a notebook. Where it
passes one of our wrappers it is told at once. Torch calls no hook after a step of an optimizer that
raised, and none after a forward that Ctrl-C has ended; nor do our own hooks come to their end where
a signal raises inside them. That is noticed when the next call of the loop begins: what was begun
and is on no stack any more was interrupted.

- A call of the model: the next one is an outermost call again.
- A step of an optimizer: it counts if its weights have changed since it began, else it does not.
- The end of a step, inside nethook: the rest of it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from nethook.hooks.hook import Owner
from nethook.hooks.modes import unrecorded
from nethook.hooks.stack import calls_under_way, handled_error, steps_under_way
from nethook.runs import names
from nethook.watching.clock.call_order import CallOrder
from nethook.watching.journal import Journal
from nethook.watching.loop.optimizers import Optimizers
from nethook.watching.loop.track import Track
from nethook.watching.recorder import Recorder

_COUNTS: Final = {
    None: "",
    True: "; its weights had changed, so it counts",
    False: "; its weights had not changed, so it does not count",
}


class Interruptions(Recorder):
    """What was begun and has not ended.

    Arguments:
        journal: where it is told.
        order: of the loop's calls.
        optimizers: whose steps may be cut short.
        complete: counts a step of an optimizer that has changed its weights.
        end_step: does what is left of the end of a step.
    """

    def __init__(
        self,
        journal: Journal,
        order: CallOrder,
        optimizers: Optimizers,
        complete: Callable[[Track, torch.optim.Optimizer], None],
        end_step: Callable[[], None],
    ) -> None:
        self._journal = journal
        self._clock = journal.clock
        self._order = order
        self._optimizers = optimizers
        self._complete = complete
        self._end_step = end_step
        self._owner: Owner | None = None
        self.error = ""
        """The type of the last exception that was seen in this step, which may be the cause."""
        self._told = 0  # the `id` of the last one that was told

    def follow(self, owner: Owner) -> None:
        """Says whose calls these are."""
        self._owner = owner

    def end_step(self, step: int) -> None:
        """What was seen in a step is of no other."""
        self.error = ""

    def raised(self, error: BaseException) -> None:
        """An exception was raised inside a call of the loop: it may be what cuts the step short."""
        self.error = type(error).__name__

    def passed(self, call: str, error: BaseException) -> None:
        """An exception leaves a call of the loop that we stand around."""
        self.error = type(error).__name__
        if self._told == id(error):
            return  # by a call inside this one
        if self._clock.turns.inside or self._clock.ending:
            self.look()  # maybe a step of an optimizer, inside that of a loss scaler
        if self.error:  # and that was not it
            self._tell(call)
        self._told = id(error)

    def look(self, *, call: bool = False, step: bool = False) -> None:
        """A call of the loop begins: what seems to be under way, and is not any more?

        `call` and `step` say that a call of a model, or a step, has just begun, and is on the
        stack itself.
        """
        clock = self._clock
        if clock.calls.depth:
            self._look_for_calls(call)
        turns = clock.turns
        if turns.inside:
            under_way = steps_under_way(turns.thread) - step
            if under_way < turns.inside:
                self._step_was_interrupted(max(0, under_way))
        if clock.ending:
            self._tell("step", counts=True)
            unrecorded(self._end_step)()
        self._told = 0

    def _look_for_calls(self, began: bool) -> None:
        owner = self._owner
        if owner is None:
            return
        roots = [model for ref in owner.roots if (model := ref()) is not None]
        under_way = calls_under_way(roots, owner.thread if owner.thread else None)
        if began and under_way == 0:
            return  # a replica, or a call inside a compiled graph: it is not on the stack itself
        if under_way - began < self._clock.calls.depth:
            self.call_was_interrupted(under_way - began)

    def call_was_interrupted(self, under_way: int = 0) -> None:
        """Calls of models have ended without a word, but for so many."""
        self._clock.calls.interrupted(under_way)
        self._tell("forward")

    def _step_was_interrupted(self, under_way: int) -> None:
        key = self._clock.turns.interrupted(under_way)
        track = None if key is None else self._optimizers.tracks.get(key)
        if track is None:
            return  # one that is part of another, or of a model that is not watched
        track.reading = False
        moved = unrecorded(track.moved)()
        self._tell("step", counts=moved)
        optimizer = track.ref()
        if moved and optimizer is not None:
            unrecorded(self._complete)(track, optimizer)

    def _tell(self, call: str, counts: bool | None = None) -> None:
        handled = None if self.error else handled_error()
        by, self.error = self.error if handled is None else type(handled).__name__, ""
        where = {"step": "optimizer.step"}.get(call, call)
        # What comes after a step is part of it.
        ended = self._order.ended if call in ("schedule", "update") else -1
        step = ended if ended >= 0 else self._clock.step
        self._journal.writer.event(
            names.INTERRUPTED,
            step,
            f"step {step} was interrupted in {where}{f': {by}' if by else ''}{_COUNTS[counts]}",
            "",
            {"call": call, "error": by or None, "counts": counts},
        )
