"""The short way through steps in which nothing is due.

Under a budget most steps of a small network measure nothing: they count, they look at the loss and
at some gradients, and hold the batch. What the parts of a watch do for that in a hundred calls,
cold ones between kernels, is done here in a few, wherever a step is as plain as those before it: a
model that is called once, a loss of one number on a line that is known, one optimizer. Whatever is
not is left to the parts: each method says whether it has done all of it, and changes nothing where
it has not. What a step leaves behind is folded together with that of its neighbours.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable
from math import isfinite
from threading import get_ident
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from nethook.hooks.modes import modes_are_active, unrecorded
from nethook.runs import names
from nethook.stats.native import binding
from nethook.torch_private import is_autocast, saved_by, version_of
from nethook.watching.flight.ring import CAP, PlainCall, random_states
from nethook.watching.loop.needs import ClockSession
from nethook.watching.measuring.loop_numbers import (
    BACKWARDS_AT,
    FORWARDS_AT,
    STEP_AT,
    STEPS_AT,
    WATCH_AT,
    ZERO_GRADS_AT,
)
from nethook.watching.protocols import DUE

if TYPE_CHECKING:
    from nethook.watching.loop.track import Track
    from nethook.watching.loop.wrappers import Loop

LONGEST: Final = 1.0
"""Seconds until what a step has left behind is folded."""

_now = time.perf_counter
_has_gradient = torch.is_grad_enabled
_Tensor = torch.Tensor
_bytes_of, _number_of = binding.bytes_of, binding.number_of
# Where somebody has put something else in its place, no loss goes the short way.
_BACKWARD: Final = getattr(torch.Tensor.backward, "__code__", None)


class _Line:
    """A line of the script that makes a loss, always in the same way."""

    __slots__ = ("code", "index", "kept", "name", "node")

    def __init__(
        self, code: CodeType, name: str, node: type, index: int, kept: dict[str, Any] | None
    ) -> None:
        self.code = code  # held: another may have its `id` otherwise
        self.name = name
        self.node = node  # the type of the last node
        self.index = index  # where the value stands among the numbers of a step
        self.kept = kept  # what the flight recorder keeps of it, but for the target


_Ended = tuple[int, float, list[Any], _Line | None, list[tuple[str, float]] | None]
"""A step that has ended: its number, when, its numbers, its loss, or its losses."""


class Lull:
    """Steps in a row in which nothing is due.

    Arguments:
        session: of the watch.
    """

    __slots__ = (
        "_calm", "_ended", "_groups", "_holds", "_lines", "_loop", "_loss", "_output", "_session",
        "_track", "_until", "_ways", "inside", "on",
    )  # fmt: skip

    def __init__(self, session: ClockSession) -> None:
        self.on = False
        """Whether the step that is under way may go the short way."""
        self._session = session
        self._loop: Loop | None = None
        self._until = 0  # the first step that is not part of it
        self._ended: list[_Ended] = []
        # By the `id` of the code and the place in it.
        self._lines: dict[tuple[int, int], _Line] = {}
        self._track: Track | None = None
        self._groups = 0
        self.inside: nn.Module | None = None
        """The model that is being called, if that call is plain."""
        self._output: tuple[str, torch.Tensor] | None = None  # what it has returned
        self._loss: _Line | None = None  # whose value is among the numbers of this step
        self._holds = self._calm = False  # whether batches are held, and without random states
        self._ways = 0

    def follow(self, loop: Loop) -> None:
        """Says whose loop it is; before that, no step is plain."""
        self._loop = loop

    # -- when ---------------------------------------------------------------------------------

    def decide(self, until: int) -> None:
        """Nothing is due in the steps from the one that begins to `until`: maybe a lull begins."""
        session = self._session
        self._track = self._plain_track()
        if self._ways != session.losses.ways:
            self._ways = session.losses.ways
            self._lines.clear()
        self.on = self._track is not None
        self._holds, self._calm = session.flight.holds, session.flight.calm
        if not self._holds:
            session.flight.plain = PlainCall()
        took = session.budget.seconds_a_step
        self._until = min(until, session.step + max(1, int(LONGEST / max(took, 1e-6))))

    def leave(self) -> None:
        """The rest of this step goes the long way."""
        self.on = False
        self.inside = self._output = None

    def _plain_track(self) -> Track | None:
        """The one optimizer of a loop in which nothing special goes on."""
        session, loop = self._session, self._loop
        if loop is None or binding.functions is None or not session.quiet or session.locked:
            return None
        if session.clock != "optimizer" or session.world > 1 or session.on_first_call:
            return None
        if session.hidden.known or session.train.has_devices or loop.scale is not None:
            return None
        steps = loop.steps
        if len(steps.tracks) != 1 or not steps.plain or session.losses.off:
            return None
        [track] = steps.tracks.values()
        self._groups = len(track.sizes)
        return track if track.set is not None and track.rates else None

    # -- what hooks tell ----------------------------------------------------------------------

    def call_begins(
        self, model: str, module: nn.Module, ref: weakref.ref[nn.Module], args: tuple[Any, ...]
    ) -> bool:
        """A watched model is called with one tensor."""
        session, loop = self._session, self._loop
        if (
            session.depth
            or session.forwards
            or session.ending
            or loop is None
            or loop.steps.inside
            or session.passes.open
            or module.training is not session.mode
            or not _has_gradient()
            or is_autocast()
        ):
            return False
        if self._holds:
            tensor, held = args[0], session.flight.plain
            if not 0 <= _bytes_of(tensor) <= CAP or tensor.is_inference():
                return False
            held.model, held.module, held.step = model, ref, session.step
            held.args, held.version = args, version_of(tensor)
            held.random = {} if self._calm else random_states([])
            held.loss, held.target = {}, None
            held.on = True
        session.depth = session.forwards = 1
        session.training = session.called = True
        session.totals["forwards"] += 1
        order = session.order
        if order.ended < 0:
            order.calls.append("forward")
        else:
            order.note("forward")
        self.inside = module
        return True

    def call_ends(self, model: str, output: Any) -> bool:
        """The model that was called has returned, or raised."""
        session, self.inside = self._session, None
        if type(output) is not _Tensor or session.depth != 1:
            return False
        session.depth = 0
        # It is marked only if somebody will ask; until then it lives as long as its loss.
        self._output = (model, output)
        return True

    def _mark(self) -> None:
        """The rest of the step goes the long way, on which nodes are looked at."""
        if self._output is not None:
            (model, output), self._output = self._output, None
            self._session.mark_output(model, (), output)

    def zeroed(self, holder: object) -> bool:
        """Gradients are about to be cleared."""
        session, loop, track = self._session, self._loop, self._track
        self._output = None
        if track is None or loop is None or track.ref() is not holder or loop.fresh:
            return False
        if session.depth or session.ending or loop.steps.inside:
            return False
        order = session.order
        if order.ended >= 0 and order.calls == order.before:  # the step before is told, in short
            order.ended, order.calls = -1, ["zero_grad"]
        else:
            order.note("zero_grad")
        session.numbers.values[ZERO_GRADS_AT] += 1
        loop.cleared = True
        return True

    def backward(self, root: torch.Tensor) -> bool:
        """A backward pass begins; called by what torch calls in the place of its function."""
        session, loop = self._session, self._loop
        usual = not (session.backwards or session.depth or session.ending or session.passes.open)
        if usual and loop is not None and not loop.steps.inside:
            # Frames: this one, the wrapper, its stub, torch's `Tensor.backward`, the script.
            frame = sys._getframe(3)
            if frame.f_code is _BACKWARD and frame.f_back is not None:
                frame = frame.f_back
                node = root.grad_fn
                # Neither hashing the code nor asking for the line: both take longer than all this.
                line = self._lines.get((id(frame.f_code), frame.f_lasti))
                if line is None or line.code is not frame.f_code:
                    line = self._line_of(frame, type(node))
                elif line.node is not type(node):
                    line = None
                if line is not None and self._plain_backward(root, node, line, loop):
                    return True
        self._mark()
        self._tell_loss()
        return False

    def _plain_backward(self, root: torch.Tensor, node: Any, line: _Line, loop: Loop) -> bool:
        session = self._session
        numbers = session.numbers.values
        if session.scale is not None or numbers[line.index] is not None:
            return False
        value = _number_of(root)
        if value is None or not isfinite(value):
            return False
        held, flight = session.flight.plain, session.flight
        if held.on:
            if line.kept is None:
                held.loss = flight.keep(root)
            else:
                held.loss, held.target = line.kept, _target(node)
        elif (call := flight.call) is not None:
            call.loss = flight.keep(root)
        self._output = None
        track = self._track
        if track is not None and (track.mixed or not loop.cleared):
            loop.steps.backward_begins(loop.since_step == 0)
        loop.since_step += 1
        loop.fresh += 1
        session.unscale = session.grad_factor = 1.0
        order = session.order
        if order.ended < 0:
            order.calls.append("backward")
        else:
            order.note("backward")
        session.backwards = 1
        session.totals["backwards"] += 1
        numbers[line.index] = value
        self._loss = line
        return True

    def _line_of(self, frame: FrameType, node: type) -> _Line | None:
        """What is known of the line of a frame; None where that is nothing, or losses differ."""
        session, code = self._session, frame.f_code
        only = session.losses.only(code.co_filename, frame.f_lineno)
        if only is None or only[1] is not node:
            return None
        row = session.loss_values.rows.get(only[0])
        index = None if row is None else session.numbers.index_of(row)
        if index is None or len(self._lines) > 64:
            return None
        line = _Line(code, only[0], node, index, session.flight.kept_of(node))
        self._lines[id(code), frame.f_lasti] = line
        return line

    def step_begins(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """An optimizer is about to step."""
        session, loop, track = self._session, self._loop, self._track
        if (
            track is None
            or loop is None
            or track.ref() is not optimizer
            or len(args) > 1
            or kwargs
            or loop.steps.inside
            or session.depth
            or session.ending
            or track.stepped
            or session.passes.open
            or len(optimizer.param_groups) != self._groups
            or "found_inf" in optimizer.__dict__
        ):
            return False
        track.note_weights()
        loop.steps.thread = get_ident()
        loop.steps.begun = track
        loop.steps.inside = 1
        session.skipped = False
        if track.set is not None and track.set.seems_odd(session.step):
            track.set.probe(session.step)
        flight = session.flight
        flight.stepped = True
        if flight.signs:
            flight.before_step(optimizer, False)
        return True

    def step_ends(self, optimizer: torch.optim.Optimizer) -> bool:
        """It has stepped, and the step is over."""
        session, loop, track = self._session, self._loop, self._track
        if (
            track is None
            or loop is None
            or loop.steps.inside != 1
            or track.ref() is not optimizer
            or track.mixed
            or session.skipped
            or len(loop.steps.tracks) != 1
        ):
            return False
        # As in `Steps.complete`: up to the assignments all of it may be done again.
        order, numbers = session.order, session.numbers
        if order.ended < 0 and order.calls[-1:] != ["step"]:
            order.calls.append("step")
        else:
            order.note("step")
        values = numbers.values
        groups = optimizer.param_groups
        if len(groups) != 1 or groups[0].get("lr") is not track.rates[0]:
            _unseen(track.note_rates, session, optimizer)
        step = session.step
        last = (
            step + 1 >= self._until
            or session.window.early
            or bool(session.modes)
            or not session.flight.was_easy()
        )
        fresh, now, own = numbers.none.copy(), _now(), sum(session.spent)
        losses = None if last or not session.loss_values.some else session.loss_values.take()
        # Nothing is called from here on but for the last, in C: no interrupt comes in between.
        session.optimizer_steps += 1
        values[STEPS_AT] += 1
        track.steps += 1
        # Asked only where the next pass begins before they are cleared.
        track.used = None
        loop.fresh = loop.since_step = 0
        loop.cleared = False
        loop.steps.begun = track.before = None
        loop.steps.inside = 0
        if last:
            session.ending = DUE
            _unseen(session.end_step)
            return True
        order.ended = step
        values[STEP_AT], values[WATCH_AT] = now - session.step_began, own - session.own_then
        values[FORWARDS_AT], values[BACKWARDS_AT] = session.forwards, session.backwards
        session.step_began, session.own_then = now, own
        numbers.values = fresh
        ended = (step, now, values, self._loss, losses)
        self._loss = None
        session.totals["steps"] += 1
        session.step = step + 1
        session.called = False
        session.forwards = session.backwards = 0
        self._ended.append(ended)
        return True

    # -- what is left behind ------------------------------------------------------------------

    def _tell_loss(self) -> None:
        """The loss of the step that is under way is one of several, or told on the long way."""
        line, self._loss = self._loss, None
        if line is not None:
            session = self._session
            session.loss_values.sums[line.name].append(session.numbers.values[line.index])
            session.loss_values.some = True

    def fold(self, _: int) -> None:
        """Folds what steps have left behind; the window and the budget hear of them."""
        self._tell_loss()
        ended, session = self._ended, self._session
        if not ended:
            return
        session.window.passed(ended[0][0], len(ended))
        self._ended = []  # at once: steps are counted once, whatever comes in between
        session.numbers.fold_steps([values for _, _, values, _, _ in ended])
        since = time.time() - _now()
        points: dict[str, list[tuple[int, float, float]]] = {}
        for step, now, values, line, losses in ended:
            if losses is None:
                losses = [] if line is None else [(line.name, values[line.index])]
            for name, mean in losses:
                points.setdefault(name, []).append((step, since + now, mean))
        for name, loss_points in points.items():
            session.writer.log_points(names.loss_name(name), loss_points, keep=names.KEPT_STEPS)
        session.budget.passed(len(ended))


def _unseen(tell: Callable[..., object], *given: object) -> None:
    """Tells a part something that may ask tensors, which no mode of the user's is to see."""
    (unrecorded(tell) if modes_are_active() else tell)(*given)


def _target(node: Any) -> torch.Tensor | None:
    """The target of a loss whose node is known to keep it; None where it was written since."""
    try:
        target: torch.Tensor = saved_by(node, "target")
    except RuntimeError:
        return None
    return target.detach() if target.requires_grad else target
