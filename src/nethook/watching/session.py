"""One watch while it runs: which step and phase it is, and where numbers go.

The taps, the optimizers and the loop's calls tell it what happens; it keeps the open windows and
hands them to the writer. What `losses` and `flight` may ask of it is `protocols.Watching`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.hooks.attachment import Resting, seconds_of_a_hook
from nethook.hooks.compile.graph import shown
from nethook.hooks.stack import error_of_call
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from nethook.stats.rows import Rows
from nethook.stats.sheet import Sheet
from nethook.watching.budget import GRADS, LOOK, OUTPUTS, QUANTITIES, Budget, next_sampled
from nethook.watching.clock.call_order import CallOrder
from nethook.watching.compiled_cost import HiddenCost
from nethook.watching.facts.averaging import Averaging
from nethook.watching.facts.telling import tell_clock, tell_failure, tell_modes
from nethook.watching.fail_open import Guard
from nethook.watching.flight.recorder import Flight
from nethook.watching.loop.fast_path import Lull
from nethook.watching.loop.interrupted import Interruptions
from nethook.watching.loop.optimizers import PATIENCE
from nethook.watching.loop.passes import Passes
from nethook.watching.losses.recorder import Losses
from nethook.watching.losses.values import LossValues
from nethook.watching.measuring.batches import Batches
from nethook.watching.measuring.device_flags import DeviceFlags
from nethook.watching.measuring.loop_numbers import (
    STEP_AT,
    STEPS_AT,
    WATCH_AT,
    LoopNumbers,
    Pending,
)
from nethook.watching.measuring.parameters import SNAPSHOT_CAP
from nethook.watching.measuring.window import QUEUE, OpenWindow
from nethook.watching.protocols import UNDER_WAY, Flag, OutputMark, mark_node
from nethook.watching.series import Catalogue


class Session:
    """What the parts of one watch share.

    Arguments:
        writer: of the run.
        models: the watched models by name; "" for an only one.
        wanted: quantities to measure.
        budget: share of the training's time, or None.
        capacity: series.
        batches: steps whose inputs the flight recorder holds on to.
        world: ranks of the run.
    """

    def __init__(
        self,
        writer: RunWriter,
        models: Mapping[str, nn.Module],
        *,
        wanted: tuple[str, ...],
        budget: float | None,
        phases: tuple[str, ...],
        capacity: int,
        batches: int,
        world: int = 1,
    ) -> None:
        self.writer = writer
        self.world = world  # ranks
        self.lock: AbstractContextManager[Any] = nullcontext()  # see `threads`
        self.locked = False  # whether that is a lock
        self.sharded = False  # whether this rank holds parts of parameters only
        self.queue = QUEUE
        self.wanted = wanted
        self.phases = phases
        self.step = writer.next_step
        self.first_step = self.step
        self.samples = True  # whether this step takes samples: 0 to 15, then 16 in each doubling
        self.depth = 0  # calls of watched models under way, one inside the other
        self.training = True  # whether the outermost call has gradients
        self.silent = False  # whether nothing is said on standard error
        self.in_backward = 0
        self.unscale: Any = 1.0  # one by the factor of a loss scaler; a tensor on a device
        self.grad_factor: Any = 1.0  # the same, by the number of ranks that average gradients
        self._averaging = Averaging() if world > 1 else None
        self.averaged = 1  # ranks
        self.scale: torch.Tensor | float | None = None
        self.called = False  # whether anything that is watched was called in this step
        self.forwards = self.backwards = 0  # in this step
        self.totals = {"steps": 0, "forwards": 0, "backwards": 0, "evaluations": 0}
        self.clock = "optimizer"
        self.optimizer_steps = 0
        self.skipped: bool | None = False
        self.snapshot_cap = SNAPSHOT_CAP
        self._models = dict(models)
        thinned = tuple(quantity for quantity in QUANTITIES if quantity in wanted)
        self.wants_params = "params" in wanted or "updates" in wanted
        if self.wants_params and "params" not in wanted:
            thinned += ("params",)
        self.budget = Budget(budget, thinned)
        self.spent = self.budget.spent
        self.hidden = HiddenCost(self.budget)
        self.wants_grads = "grads" in wanted
        self.resting: Resting | None = None  # the taps, where they may be taken off for a while
        self.mode: bool | None = None  # `training` of the model at its last training call
        self._by_parts = False  # whether modules are called without the model around them
        self._due: list[bool] | None = None
        self._marks: dict[Any, OutputMark] = {}  # (model, path) -> what its nodes are marked with
        self.hook_seconds = seconds_of_a_hook()  # that no hook can see by itself
        self.interruptions = Interruptions(self)
        self.ending = 0  # how far the end of a step has come: see `protocols`
        self._left: list[Callable[[int], object]] = []  # what is left of it
        self._outermost = ""  # the model whose call is under way
        self.lull = Lull(self)
        self._decide()
        self.catalogue = Catalogue(writer, capacity)
        self.train = self.catalogue.new_rows()
        self.guard = Guard(functools.partial(tell_failure, self), self._give_up)
        self.pending = Pending(self)
        self.device_flags = DeviceFlags(self)
        self.numbers = LoopNumbers(self)
        self.order = CallOrder(writer)
        self.batches = Batches(self)
        self.passes = Passes(self)
        self.losses = Losses(self)
        self.flight = Flight(self, batches)
        self.on_give_up: list[Any] = []  # what takes hooks off
        self.on_first_call: list[Any] = []  # called once, before the first call of a model
        self.on_step: list[Any] = []  # called with the number of the step that has ended
        self.on_window: list[Any] = []  # called before a window is handed over
        self.on_gradients: list[Any] = []  # called with an optimizer's track, before its step
        self.op_lists: dict[str, Any] = {}  # model -> its operations
        self._first_calls = 0
        self.loss_values = LossValues(self)
        self.modes: dict[str, dict[str, bool]] = {}
        self.window = OpenWindow(self)
        self.step_began = time.perf_counter()
        self.own_then = 0.0
        # What is done at the end of a step, in order; each may be done twice.
        self._at_end: tuple[Callable[[int], object], ...] = (
            self.lull.fold, self.order.step_ended, self.loss_values.step_ended, self._time_step,
            self.numbers.end_step, self.train.step_ended, self._tell_recorders,
        )  # fmt: skip

    # -- what taps ask ------------------------------------------------------------------------

    def row(
        self, address: str, quantity: str, info: Mapping[str, object] | None = None
    ) -> int | None:
        """The row of a series."""
        return self.catalogue.row(address, quantity, info)

    def off_rows(self) -> Rows:
        """The rows of passes without gradient."""
        return self.passes.rows

    def off_phase(self) -> str:
        """What the pass without gradient that is under way is taken for so far."""
        return self.passes.phase

    def count_first_call(self) -> int:
        """The place of a site in the order of first calls."""
        self._first_calls += 1
        return self._first_calls - 1

    def called_alone(self, module: nn.Module, grad_mode: bool | None = None) -> bool:
        """A module was called and no watched model as a whole: whether that is training.

        `grad_mode` is said where the call is part of a compiled graph, in which it is off.
        """
        if self.ending:
            self.interruptions.look()
        self._by_parts = True
        training = torch.is_grad_enabled() if grad_mode is None else grad_mode
        if training:
            self._enter_training()
        else:
            self.passes.begin(module)
        return training

    def flag(
        self, address: str, quantity: str, module: nn.Module | None, inputs: Any, value: Any
    ) -> None:
        """NaN or infinities were seen: the flight recorder looks into it."""
        phase = "train" if self.training or quantity != names.OUTPUTS else self.passes.phase
        flag = Flag(address, quantity, self.step, phase, module, inputs, value)
        self.flight.non_finite(flag)

    def mode_changed(self, address: str, phase: str, mode: bool) -> None:
        """A module is in another mode than in the last pass of this phase."""
        self.modes.setdefault(phase, {})[address] = mode

    # -- calls of watched models --------------------------------------------------------------

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
        if self.depth or self.ending or self.interruptions.in_step:
            if grad_mode is not None and self.depth == 1 and model == self._outermost:
                self.interruptions.call_was_interrupted()  # no model calls itself in a graph
            self.interruptions.look(call=True)
        self.depth += 1
        if self.depth > 1:
            return
        self._outermost = model
        if self.on_first_call:
            for told in self.on_first_call:
                told()
            self.on_first_call = []
        self.training = torch.is_grad_enabled() if grad_mode is None else grad_mode
        if self.training:
            self._enter_training()
            self.forwards += 1
            self.totals["forwards"] += 1
            if self._averaging is not None:
                self.averaged = self._averaging.over(module)
            if grad_mode is None:
                self.flight.forward_begins(model, module, args, kwargs)
            if module.training is not self.mode:  # so it is with those inside it, maybe
                self.mode = module.training
                self.flight.mode_changed()
                self._wake()
        else:
            self._wake()
            self.passes.begin(module, args)
        if self.on_outputs or self.looks or not self.training:
            self.batches.inputs(model, args, kwargs)

    def _enter_training(self) -> None:
        if self.passes.open:
            self.passes.end()
            self._rest_or_wake()
        if self.clock != "optimizer":
            self._tick_without_optimizer()
        elif self.optimizer_steps == 0 and self.backwards >= self.patience():
            self.change_clock("backward")
            self.end_step()
        self.called = True  # in the step that is under way from here on
        self.order.note("forward")

    def patience(self) -> int:
        """Backward passes to wait for a step of an optimizer."""
        return PATIENCE

    def _tick_without_optimizer(self) -> None:
        counted = self.backwards if self.clock == "backward" else self.forwards
        if counted:
            self.end_step()

    def change_clock(self, clock: str) -> None:
        """Something else is what counts as a step from now on."""
        self.clock = clock
        self.writer.info(clock=clock)
        tell_clock(self, clock)

    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """A call of a watched model has returned; None where it raised."""
        depth = self.depth = self.depth - 1 if self.depth else 0
        if output is None:
            error = error_of_call()
            if error is not None and not type(error).__module__.startswith("nethook"):
                self.interruptions.passed("forward", error)
            return
        if depth:
            return
        if self.training and self.in_backward == 0:
            returned = [((), output)] if type(output) is torch.Tensor else tensors(output)
            for path, tensor in returned:
                self.mark_output(model, path, tensor)
        if self.training and self.looks:
            self.flight.forward_ends()
        if self.on_outputs or not self.training or self.samples:
            self.batches.outputs(model, module, args, output)

    def mark_output(self, model: str, path: Any, tensor: torch.Tensor) -> None:
        """Marks the node that has made an output, to know it again on the way from the loss."""
        mark_node(tensor.grad_fn, self._marks, (model, path))

    # -- backward passes ----------------------------------------------------------------------

    def backward_begins(self, roots: list[torch.Tensor]) -> None:
        """`torch.autograd.backward` is about to run."""
        if self.passes.open:
            self.passes.end()
        self.order.note("backward")
        self.backwards += 1
        self.totals["backwards"] += 1
        scale, self.scale = self.scale, None
        fine = self.losses.backward(roots, scale)
        self.flight.backward_begins(roots, bool(fine))

    # -- the end of a step --------------------------------------------------------------------

    def end_step(self) -> None:
        """A step has ended: what it measured goes to the window.

        After an interrupt in here the rest is done when the next call of the loop begins.
        """
        step = self.step
        if self.ending != UNDER_WAY:
            self._left = [*reversed(self._at_end)]
            self.ending = UNDER_WAY
        while self._left:
            self._left[-1](step)
            self._left.pop()  # not before: an interrupt may come in between
        done = step + 1 - self.first_step
        samples = next_sampled(done - 1) == done
        self.window.step_ended(step)  # a second time makes no difference
        self.totals["steps"] += 1
        self.step = step + 1
        self.ending = 0
        self.samples = samples
        # The taps that rest have not seen who was called.
        if self.called and self.forwards == 0:
            self._by_parts, self._due = True, None
        self.called = False
        self.forwards = self.backwards = 0
        self.skipped = False
        self._next_step()

    def _tell_recorders(self, step: int) -> None:
        self.device_flags.ask(step)
        self.losses.step_ended(step)
        self.flight.step_ended(step, self.skipped)
        self.interruptions.error = ""
        for told in self.on_step:
            told(step)
        if self.modes:
            tell_modes(self, self.modes)

    def _time_step(self, step: int) -> None:
        now, own = time.perf_counter(), sum(self.spent)
        values = self.numbers.values
        if self.hidden.known:
            self.hidden.step_ended(now - self.step_began, own - self.own_then)
        values[STEP_AT], values[WATCH_AT] = now - self.step_began, own - self.own_then
        self.step_began, self.own_then = now, own

    def _next_step(self) -> None:
        if self.step % LOOK == 0:
            self.budget.writer_took(self.writer.seconds)
        if self.budget.step_ended():
            every = self.budget.every
            often = f"each quantity is measured once in {every} steps"
            said = often if every > 1 else "everything is measured in every step"
            data = {"every": every, "overhead": self.budget.overhead}
            self.note_event(names.THINNED, said, data=data)
        self._decide()

    def _decide(self) -> None:
        due = self.budget.due
        if self.hidden.known and self.hidden.without_taps():
            due = list(due)
            due[OUTPUTS] = due[GRADS] = False
        if due is self._due:  # nothing, as in the step before
            self._be_quiet()
            return
        self._due = due if not any(due) else None
        self._be_quiet()
        self.on_outputs, self.on_grads, self.on_param_grads, self.on_params = due
        self._rest_or_wake()
        shown.ask(self, self.on_outputs or self.on_grads)

    def _be_quiet(self) -> None:
        self.looks = self.budget.looks
        self.quiet = not (self.looks or self.samples)
        if self.quiet:
            sampled = self.first_step + next_sampled(self.step - self.first_step)
            self.lull.decide(min(sampled, self.step + self.budget.still() + 1))
        else:
            self.lull.leave()

    @property
    def measures(self) -> bool:
        """Whether this step is one that measures something, as all do that are not thinned."""
        return self.budget.every == 1 or self._due is None

    def _rest_or_wake(self) -> None:
        """Taps have nothing to do in a step in which neither outputs nor gradients are due."""
        if self.resting is not None:
            if self.on_outputs or self.on_grads or self._by_parts or self.clock != "optimizer":
                self.resting.wake()
            else:
                self.resting.rest()

    def _wake(self) -> None:
        if self.resting is not None:
            self.resting.wake()

    def write_facts(self) -> None:
        """Brings sites and totals in the file up to date; `facts` puts itself in its place."""

    def snapshot_turns(self) -> int:
        """Steps until each update was measured; `optimizers` puts itself in its place."""
        return 1

    def loop_stepped(self) -> None:
        """An optimizer has stepped; `loop` puts itself in its place."""

    # -- losses -------------------------------------------------------------------------------

    def loss_value(self, name: str, value: torch.Tensor | float, phase: str) -> None:
        """One value of a loss."""
        if phase != "train":
            self.passes.loss(name, value)
        else:
            self.loss_values.add(name, value)

    def loss_record(self, name: str, data: Mapping[str, object], phase: str) -> None:
        """How a loss was made."""
        self.writer.loss(name, self.step, data, phase)

    # -- what parts may ask -------------------------------------------------------------------

    @property
    def phase(self) -> str:
        """The phase of the call that is under way, or was last."""
        return "train" if self.training else self.passes.phase

    def event(
        self, kind: str, message: str, address: str = "", data: Mapping[str, object] | None = None
    ) -> None:
        """An event at this step; it closes the open window."""
        self.window.close_early()
        self.note_event(kind, message, address, data)

    def note_event(
        self, kind: str, message: str, address: str = "", data: Mapping[str, object] | None = None
    ) -> None:
        """An event at this step that leaves the window as it is."""
        self.writer.event(kind, self.step, message, address, data)

    def sampled(self) -> bool:
        """Whether samples are taken in this step."""
        return self.samples

    def models(self) -> Mapping[str, nn.Module]:
        """The watched models by name."""
        return self._models

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """The optimizers that were seen, by name; `optimizers` puts itself in its place."""
        return {}

    def run_path(self) -> str:
        """The path of the run file."""
        return str(self.writer.path)

    # -- ends ---------------------------------------------------------------------------------

    def _give_up(self) -> None:
        for take_off in self.on_give_up:
            take_off()

    def hand_in(self, window: Sheet) -> bool:
        """The last window of a phase: it would be lost to a writer that is behind."""
        if self.writer.waiting:
            self.writer.flush()
        return self.writer.hand_over(window, "end")

    def finish(self) -> None:
        """Everything that is still open goes to the file."""
        self.interruptions.look()
        self.lull.fold(self.step)
        if self.passes.open:
            self.passes.end()
        if self.backwards or (self.forwards and self.totals["steps"] == 0):
            if self.optimizer_steps == 0 and self.totals["steps"] == 0:
                self.change_clock("backward" if self.backwards else "forward")
            # Kept, and not counted, where it changed no weights.
            elif self.clock == "optimizer" and not self.numbers.values[STEPS_AT]:
                self.writer.info(unfinished_step=self.step)
                self.totals["steps"] -= 1
            self.end_step()
        self.order.finish()
        self.passes.finish()
        self.window.finish()
        self.write_facts()
