"""One watch while it runs: hooks tell it what torch calls, and it drives clock and recorders.

A step of a watched training, from its first call to its last:

    call_begins      the clock counts a forward; recorders hold the batch, and measure it
    call_ends        recorders measure what came out, and mark it for the loss
    backward_begins  the loss is read; the flight recorder keeps what made it
    step_begins      weights and gradients are read, as the optimizer will use them
    step_ends        what was added is read; the clock says whether the step is over
    end_step         numbers go to the rows, recorders have their turn, the window may end, and the
                     schedule decides what is due in the next step

Where nothing is due, recorders return at once, and the end of the step is put off: the numbers of
such steps are folded together (`_put_off`). What a layer returns and its gradients do not pass
here: taps (`measuring/taps.py`) fold them into the rows of the journal by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from threading import get_ident
from typing import Any, Final

import torch
from torch import nn

from nethook.hooks.hook import Owner
from nethook.hooks.stack import error_of_call, steps_under_way
from nethook.runs import names
from nethook.stats.shards import is_shared
from nethook.watching.clock.call_order import MOST, CallOrder
from nethook.watching.clock.calls import PLAIN
from nethook.watching.clock.clock import BACKWARD, FORWARD, MEANINGS, OPTIMIZER, UNDER_WAY
from nethook.watching.clock.step_end import StepEnd
from nethook.watching.facts.averaging import Averaging
from nethook.watching.facts.facts import Facts
from nethook.watching.facts.graph import Graph
from nethook.watching.journal import Journal
from nethook.watching.loop.closures import closure_of, read_after, with_closure
from nethook.watching.loop.interrupted import Interruptions
from nethook.watching.loop.optimizers import Optimizers
from nethook.watching.loop.passes import Passes
from nethook.watching.loop.track import Track
from nethook.watching.measuring.gradient_scale import GradientScale
from nethook.watching.measuring.loop_numbers import Losses
from nethook.watching.measuring.window import OpenWindow
from nethook.watching.recorders import WatchRecorders

_OWN_FRAMES: Final = 4  # from the script's call of `torch.autograd.backward` to `Losses.backward`
PARTS: Final = "modules are called without the model around them"
"""Why hooks on layers are needed in every step."""


class Session:
    """Drives clock and recorders.

    Arguments:
        journal: the run that is written, with clock and schedule.
        models: the watched models by name; "" for an only one.
        batches: steps whose inputs the flight recorder holds on to.
    """

    lock: AbstractContextManager[Any] = nullcontext()
    """Held around everything, where several threads are followed: see `threads`."""
    locked = False

    def __init__(self, journal: Journal, models: Mapping[str, nn.Module], batches: int) -> None:
        self.models = dict(models)
        self.journal = journal
        self.clock = journal.clock
        self.schedule = journal.schedule
        self.scale = GradientScale(Averaging().over if journal.options.world > 1 else None)
        self.order = CallOrder(journal.writer)
        self.recorders = WatchRecorders(journal, self.scale, batches, self.called_alone)
        self.passes = Passes(journal, self.recorders.losses, self.recorders.scores, self.order)
        self.optimizers: Optimizers
        self.interruptions: Interruptions
        self.window: OpenWindow
        self._end = StepEnd()
        journal.on_give_up += [self.passes.turn_off, self.recorders.losses.turn_off]

    def follow(self, optimizers: Optimizers, facts: Facts, owner: Owner) -> None:
        """Says whose steps are followed; before that nothing may happen."""
        self.optimizers = optimizers
        graph = Graph(self.journal, self.models, optimizers, self.recorders.losses)
        self.interruptions = Interruptions(
            self.journal, self.order, optimizers, self.step_complete, self.turns_taken
        )
        self.interruptions.follow(owner)
        self.window = OpenWindow(self.journal, self.recorders.window_ends, facts.write)
        for recorder in (self.interruptions, graph, facts, self.recorders.modes):
            self.recorders.add(recorder)

    def call_begins(
        self,
        model: str,
        module: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grad_mode: bool | None = None,
    ) -> None:
        """A watched model is called; the outermost call decides the phase.

        `grad_mode` is said where the call is part of a compiled graph, whose memory is not held.
        """
        clock, schedule, recorders = self.clock, self.schedule, self.recorders
        calls = clock.calls
        if calls.depth or clock.ending or clock.turns.inside:  # as `clock.unfinished`
            if grad_mode is not None and calls.depth == 1 and model == calls.outermost:
                self.interruptions.call_was_interrupted()  # no model calls itself in a graph
            self.interruptions.look(call=True)
        if not calls.begins(model):
            return
        if recorders.first_call:
            for told in recorders.first_call:
                told()
            recorders.first_call.clear()
        calls.training = training = torch.is_grad_enabled() if grad_mode is None else grad_mode
        if training:
            flight, modes, mode = recorders.flight, recorders.modes, module.training
            if clock.no_grad.open or clock.optimizer_steps == 0 or clock.kind != OPTIMIZER:
                self._before_training()
            self.order.heard.append("forward")
            clock.call_begins()
            if clock.forwards > MOST:
                self.order.settle()  # there may be no step ever again
            if self.scale.has_ranks:
                self.scale.forward_begins(module)
            if grad_mode is None and not flight.off:
                try:
                    flight.held.begins(model, module, args, kwargs)
                except Exception as error:
                    flight.failed(error)
            if mode is not modes.model and modes.model_called(mode):
                flight.mode_changed()
                schedule.wake()  # so it is with those inside, maybe
        else:
            schedule.wake()
            self.passes.begin(module, args)
        quiet = kwargs is PLAIN and training and schedule.quiet
        for begins in (recorders.quiet if quiet else recorders).call_begins:
            begins(model, module, args, kwargs)

    def called_alone(self, module: nn.Module, grad_mode: bool | None) -> bool:
        """A module was called and no watched model as a whole: whether that is training.

        `grad_mode` is said where the call is part of a compiled graph, in which it is off.
        """
        if self.clock.ending:
            self.interruptions.look()
        self.schedule.keep_awake(PARTS)
        training = torch.is_grad_enabled() if grad_mode is None else grad_mode
        if training:
            self._before_training()
            self.order.note("forward")
            self.clock.calls.called = True
            self.recorders.losses.called(module)
            if len(self.order.heard) > MOST:
                self.order.settle()
        else:
            self.passes.begin(module)
        return training

    def _before_training(self) -> None:
        """A call with gradients begins: a pass without has ended, and maybe a step."""
        clock = self.clock
        if clock.no_grad.open:
            self.passes.end(self.recorders)
            self.schedule.rest_or_wake()
        if clock.optimizer_steps == 0 or clock.kind != OPTIMIZER:
            self._tick_without_optimizer()

    def _tick_without_optimizer(self) -> None:
        """A step ends here where none of an optimizer has ended it."""
        clock = self.clock
        waits = clock.kind == OPTIMIZER and clock.backwards > 0 and not clock.turns.inside
        # A closure moves weights, too, in a step that may have begun before the watch did.
        if waits and self.optimizers.by_hand.have_moved() and not steps_under_way():
            self.change_clock(BACKWARD)
        if clock.begins_next_step(self.optimizers.patience()):
            if clock.kind == OPTIMIZER:
                self.change_clock(BACKWARD)
            self.end_step()

    def change_clock(self, kind: str) -> None:
        """Something else is what counts as a step from now on."""
        self.clock.kind = kind
        self.schedule.keep_awake("the clock", kind != OPTIMIZER)
        self.journal.writer.info(clock=kind)
        self.journal.event(names.CLOCK, f"a step is {MEANINGS[kind]}", data={"clock": kind})

    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """A call of a watched model has returned; None where it raised."""
        calls, recorders = self.clock.calls, self.recorders
        outermost = calls.ends()
        if output is None:
            error = error_of_call()
            if error is not None and not type(error).__module__.startswith("nethook"):
                self.interruptions.passed("forward", error)
        elif outermost:
            quiet = calls.training and self.schedule.quiet
            for told in (recorders.quiet if quiet else recorders).call_ends:
                try:
                    told(model, module, args, output)
                except Exception as error:
                    recorders.failed(told, error)

    def backward_begins(self, roots: list[torch.Tensor]) -> None:
        """`torch.autograd.backward` is about to run."""
        clock, recorders, scale = self.clock, self.recorders, self.scale
        calls, turns = clock.calls, clock.turns
        if calls.depth or clock.ending or turns.inside:
            self.interruptions.look()
        if calls.nobody:
            self.called_alone(next(iter(self.models.values())), grad_mode=True)
        if clock.optimizer_steps == 0:
            self.optimizers.by_hand.backward_begins()
        # What the only optimizer has used is gone, if it has cleared its gradients since.
        if not clock.gradients.cleared or len(turns.counts) > 1:
            self.optimizers.backward_begins(clock.gradients.since_step == 0)
        if clock.no_grad.open:
            self.passes.end(recorders)
        self.order.heard.append("backward")
        clock.backward_begins()
        factor = None if scale.is_one else scale.backward_begins()
        losses, flight, fine, ways = recorders.losses, recorders.flight, False, 0
        if not losses.off:
            ways = losses.lines.ways
            try:
                fine = losses.backward(roots, factor, _OWN_FRAMES)
            except Exception as error:
                losses.failed(error)
        if not flight.off:
            try:
                flight.backward_begins(roots, fine)
            except Exception as error:
                flight.failed(error)
        # A loss that is made in another way is looked at whatever is due.
        quiet = self.schedule.quiet and losses.lines.ways == ways
        for told in (recorders.quiet if quiet else recorders).before_backward:
            told(roots)

    def zeroed(self, holder: object) -> None:
        """Gradients of an optimizer or of a module are about to be cleared."""
        clock, losses = self.clock, self.recorders.losses
        track = self.optimizers.tracks.get(id(holder))
        if track is not None and track.ref() is holder:
            track.mixed = False  # what a pass has added to is gone, as before an adversary's step
            whole = True
        elif self.optimizers.concerns(holder):
            whole = isinstance(holder, torch.optim.Optimizer)  # of a part it may hold more
        else:
            return
        if clock.calls.depth or clock.ending or clock.turns.inside:
            self.interruptions.look()
        self.order.note_with_line("zero_grad")
        if clock.kind == BACKWARD:
            self.optimizers.by_hand.zeroed()
        if losses.unmarked is not None:
            losses.forget()
        if wiped := clock.zeroed(whole):
            self.recorders.numbers.count(names.WIPED, wiped)
            self.optimizers.wiped_passes.wiped(wiped)
        if self.scale.on:
            self.scale.removed()

    def clipped(self, limit: float, norm: torch.Tensor | None) -> None:
        """Gradients are about to be clipped."""
        numbers, scale = self.recorders.numbers, self.scale
        self.order.note_with_line("clip")
        numbers.count(names.CLIPS)
        numbers.set(names.CLIP_LIMIT, float(limit))
        factor: float | torch.Tensor = 1.0
        if scale.on:
            numbers.count(names.SCALED_CLIPS)
            factor = scale.unscale
        if norm is not None and not is_shared(norm):
            if norm.device.type == "cpu":
                numbers.set(names.GRAD_NORM_UNCLIPPED, float(norm) * float(factor))
            else:
                numbers.pending.add(names.GRAD_NORM_UNCLIPPED, norm * factor)
        if self.schedule.param_grads:
            self.optimizers.unclipped(float(factor))

    def loss_scaled(self, scale: torch.Tensor) -> None:
        """A loss was multiplied with a scaler's factor; the next backward pass is of that."""
        self.order.scaler = True
        self.scale.loss_scaled(scale.item() if scale.device.type == "cpu" else scale)
        self.scale.write_down(self.journal, self.recorders.numbers)

    def unscaled(self, by_hand: bool) -> None:
        """Gradients were divided by a scaler's factor, by the script itself or in its step."""
        self.scale.removed()
        if by_hand:
            self.order.note("unscale")
            self.recorders.numbers.count(names.UNSCALES)

    def scale_updated(self, scale: torch.Tensor | None) -> None:
        """A scaler has chosen its next factor."""
        self.order.note("update")
        if scale is not None and scale.device.type == "cpu":
            self.scale.last = scale.item()
            self.scale.write_down(self.journal, self.recorders.numbers)

    def scheduled(self) -> None:
        """A learning-rate scheduler begins its step."""
        if self.clock.unfinished:
            self.interruptions.look()
        self.order.note("schedule")
        self.recorders.numbers.count(names.SCHEDULES)

    def step_begins(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """An optimizer is about to step; other arguments for it, or None."""
        clock, turns, key = self.clock, self.clock.turns, id(optimizer)
        if clock.calls.depth or clock.ending or turns.inside:
            self.interruptions.look(step=True)
        if not turns.begins():
            return None  # an optimizer that is part of another
        turns.thread = get_ident()
        track = self.optimizers.tracks.get(key)
        if track is None or track.ref() is not optimizer:
            track = self.optimizers.track_of(optimizer, steps=True)
            if track is None:
                self.optimizers.stranger_steps(optimizer)
                return None
        if clock.no_grad.open:
            self.passes.end(self.recorders)
        if clock.kind != OPTIMIZER:
            self.change_clock(OPTIMIZER)
        if turns.taken and clock.steps_again(key):
            turns.cut_short()
            self.turns_taken()
        self.optimizers.step_begins(track, optimizer)
        turns.begun = key
        closure = closure_of(args, kwargs) if kwargs or len(args) > 1 else None
        if closure is None:
            self._read(track, optimizer)
            return None
        track.reading = True
        read, guard = partial(self._read_late, track), self.journal.guard
        closure = read_after(closure, read, guard, self.interruptions.raised)
        return with_closure(args, kwargs, closure)

    def _read_late(self, track: Track) -> None:
        """The closure has computed the gradients that the step will use."""
        optimizer = track.ref() if track.reading else None
        if optimizer is not None:
            self._read(track, optimizer)
        track.reading = False

    def _read(self, track: Track, optimizer: torch.optim.Optimizer) -> None:
        recorders = self.recorders
        skipped = self.clock.skipped = self.optimizers.read(track, optimizer)
        told = (recorders.quiet if self.schedule.quiet else recorders).before_step
        if told:
            parameters = [] if track.set is None else track.set.all
            for tell in told:
                tell(parameters)
        recorders.flight.step_begins(optimizer, skipped)

    def step_ends(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has stepped."""
        turns = self.clock.turns
        track = self.optimizers.tracks.get(id(optimizer))
        if turns.inside > 1:  # some of them may have raised
            turns.inside = min(turns.inside, steps_under_way() or 1)
            track = None if turns.inside > 1 else track
        if track is None:
            turns.ends()
        else:
            self.step_complete(track, optimizer)

    def step_complete(self, track: Track, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has changed its weights: that is read, and it has had its turn.

        An interrupt may come in here. Up to the clock's own step all of it may be done again, and
        will be; after that the step counts, and will be ended.
        """
        clock, optimizers = self.clock, self.optimizers
        optimizers.step_ends(track, optimizer)
        self.order.heard.append("skipped-step" if clock.skipped else "step")
        if self.scale.on:
            self.scale.removed()
        gone = optimizers.gone() if len(optimizers.tracks) > 1 else ()
        if clock.step_ends(id(optimizer), gone):
            self.turns_taken()

    def step_skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A loss scaler has left a step out."""
        track = self.optimizers.track_of(optimizer)
        if track is None:
            return
        self.recorders.numbers.count(names.SKIPPED_STEPS)
        self.order.note("skipped-step")
        self.journal.note_event(
            names.STEP_SKIPPED, "a loss scaler found gradients that are not finite"
        )
        if self.clock.step_skipped(id(track.ref()), self.optimizers.gone()):
            self.turns_taken()

    def turns_taken(self) -> None:
        """Every optimizer has had its turn: the step is over."""
        # Else nothing is read, or this is the rest, after an interrupt.
        if not self.schedule.quiet and self.clock.ending != UNDER_WAY:
            self.optimizers.end_step()
        self.end_step()

    def end_step(self) -> None:
        """A step has ended: what it measured goes to the window, or waits for its neighbours.

        After an interrupt in here the rest is done when the next call of the loop begins.
        """
        clock = self.clock
        step, begun = clock.step, clock.ending == UNDER_WAY
        if clock.kind == BACKWARD and not begun:
            self.optimizers.by_hand.step_ends()
        put_off = not begun and self._put_off(step)
        if put_off:
            self.order.heard.append(step)
            self._keep(step)
        else:
            if not begun:
                self._end.begin((
                    self.order.step_ended, self._keep, self._fold, self._tell_recorders,
                    self.window.step_ended,
                ))  # fmt: skip
                clock.end_begins()
            self._end.go_on(step)
        # The hooks that rest have not seen who was called.
        if clock.forwards == 0 and clock.calls.called:
            self.schedule.keep_awake(PARTS)
        clock.step_over()
        if not put_off:
            self._next_step(step)

    def _put_off(self, step: int) -> bool:
        """Whether this step ends together with its neighbours: nothing is due in any of them."""
        if step + 1 >= self.schedule.until:
            return False
        journal, recorders = self.journal, self.recorders
        # What devices have to tell is asked step by step.
        odd = journal.eventful or recorders.numbers.irregular or journal.train.has_devices
        return not odd and recorders.flight.was_easy()

    def _keep(self, step: int) -> None:
        recorders = self.recorders
        losses: Losses = ()
        try:
            losses = recorders.loss_values.take()
        except Exception as error:
            recorders.loss_values.failed(error)
        recorders.numbers.keep(step, losses)

    def _fold(self, step: int) -> None:
        """The numbers of this step, and of those before it that were put off, go to the rows."""
        numbers = self.recorders.numbers
        ended = numbers.take()
        before = len(ended) - (bool(ended) and ended[-1][0] == step)
        if before:
            self.window.passed(ended[0][0], before)
        numbers.fold(ended)
        self.journal.train.step_ended()

    def _tell_recorders(self, step: int) -> None:
        self.recorders.device_flags.ask(step)
        for told in self.recorders.end_step:
            told(step)

    def _next_step(self, step: int) -> None:
        """Decides what is due in the step that begins."""
        budget = self.schedule.budget
        if self.schedule.step_ended(step, self.journal.writer.seconds):
            data = {"every": budget.every, "overhead": budget.overhead}
            self.journal.note_event(names.THINNED, budget.in_words(), data=data)

    def finish(self) -> None:
        """Everything that is still open goes to the file."""
        clock, recorders = self.clock, self.recorders
        self.schedule.finish()
        self.interruptions.look()
        self._fold(clock.step)
        if clock.no_grad.open:
            self.passes.end(recorders)
        if clock.backwards or (clock.forwards and clock.totals["steps"] == 0):
            if clock.optimizer_steps == 0 and clock.totals["steps"] == 0:
                self.change_clock(BACKWARD if clock.backwards else FORWARD)
            # Kept, and not counted, where it changed no weights.
            elif clock.kind == OPTIMIZER and not clock.stepped:
                self.journal.writer.info(unfinished_step=clock.step)
                clock.totals["steps"] -= 1
            self.end_step()
        self.order.finish()
        self.passes.finish()
        recorders.device_flags.flush()
        self.window.finish()
        for told in recorders.close:
            told()
