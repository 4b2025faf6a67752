"""Passes without gradient: evaluation, or something else.

A pass is what runs without gradient between two training calls. It is an evaluation if the model is
in evaluation mode, if a loss is taken of what it returns, or if it goes over a run of different
batches (and counts right answers, as it seems); else it is `aux` (a GAN's generator pass, dropout
asked many times about one batch). That is known at its end.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.wrappers import runs_compiled
from nethook.hooks.hook import Owner
from nethook.hooks.process.comparisons import Comparisons
from nethook.hooks.process.loss_functions import LossFunctions
from nethook.runs.writing.windowing import WindowClock
from nethook.stats.rows import Rows
from nethook.stats.sheet import Sheet
from nethook.torch_private import BatchNorms, Dropouts
from nethook.watching.clock.call_order import CallOrder
from nethook.watching.evaluations.scores import Scores
from nethook.watching.journal import Journal
from nethook.watching.loop.written_buffers import WrittenBuffers
from nethook.watching.losses.recorder import Losses
from nethook.watching.measuring.window import QUEUE
from nethook.watching.recorder import Recorders

BATCHES: Final = 3
SAMPLES: Final = 4
"""A pass over so many different batches, of so many samples each, is an evaluation. The states of
an environment come one by one."""
SINGLES: Final = 16
"""So do samples, of a model with batch norm or dropout in training mode: agents have none, as a
rule. Dropout that is asked several times about each of them is asked on purpose."""


class Passes:
    """The pass that is under way, and the windows of passes."""

    def __init__(self, journal: Journal, losses: Losses, scores: Scores, order: CallOrder) -> None:
        self._journal = journal
        self._losses = losses
        self._scores = scores
        self._order = order
        self._windows: dict[str, Sheet] = {}
        self._clocks: dict[str, WindowClock] = {}
        self._counts: dict[str, int] = {"eval": 0, "aux": 0}
        self._functions: LossFunctions | None = None
        self._comparisons: Comparisons | None = None
        self._comparing = False
        self._last_batch: weakref.ref[torch.Tensor] | None = None
        self._batches = self._singles = self._asked = 0
        self._written: WrittenBuffers | None = WrittenBuffers()

    def begin(self, module: nn.Module, args: tuple[Any, ...] = ()) -> None:
        """A call without gradient begins."""
        clock = self._journal.clock
        if clock.pass_begins():
            self._batches = self._singles = self._asked = 0
            self._order.note("evaluation")
            if self._functions is None:
                self._functions = LossFunctions(Owner("nethook.watch"), self._saw_loss)
                if not runs_compiled(module):  # what a graph compares may not change meanwhile
                    self._comparisons = Comparisons(Owner("nethook.watch"), self._saw_comparison)
            self._functions.put_on()
            if self._comparisons is not None:
                self._comparisons.put_on()
        if not module.training:
            clock.pass_evaluates()
            self._look_at_buffers(module)
        elif clock.no_grad.phase == "aux":
            self._note_batch(module, args)

    def _look_at_buffers(self, module: nn.Module | None) -> None:
        """A model is called in evaluation mode, or (None) the pass has ended."""
        if self._written is None:
            return
        journal = self._journal
        try:
            if module is not None:
                self._written.begins(module)
            elif written := self._written.ended():
                facts = {"buffers": written, "step": journal.step}
                journal.writer.info(written_in_evaluation=facts)
        except Exception as error:
            journal.guard.failed("buffers in evaluations", error, self._leave_buffers)

    def _leave_buffers(self) -> None:
        self._written = None

    def _note_batch(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Counts different batches of several samples; one that is asked about again is one."""
        batch = next((arg for arg in args if isinstance(arg, torch.Tensor)), None)
        if batch is None or not batch.dim():
            return
        self._asked += 1
        last = self._last_batch() if self._last_batch is not None else None
        if last is batch:
            return
        self._last_batch = weakref.ref(batch)
        if batch.shape[0] >= SAMPLES:
            self._batches += 1
            if self._batches >= BATCHES and self._asked < 2 * self._batches:
                self._journal.clock.pass_evaluates()
        else:
            self._singles += 1
            asked_once = self._asked < 2 * self._singles
            if self._singles == SINGLES and asked_once and _depends_on_mode(module):
                self._journal.clock.pass_evaluates()
                self._journal.writer.info(single_samples=self._journal.step)

    def _saw_loss(
        self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        clock, guard = self._journal.clock, self._journal.guard
        try:
            # A training call ends a pass, so where one is open the gradient is not merely
            # switched off for a moment. The loss may be taken inside the model, too.
            watched = clock.no_grad.open and guard.alive
            if watched and self._losses.no_grad_loss(kind, args, kwargs, result):
                clock.pass_evaluates()
        except Exception as error:
            guard.failed("the losses of passes without gradient", error, self.turn_off)

    def _saw_comparison(
        self, left: torch.Tensor, right: torch.Tensor, result: torch.Tensor
    ) -> None:
        if self._comparing or not self._journal.guard.alive:
            return
        self._comparing = True  # its own comparisons are none of the script's
        try:
            if self._scores.compared(left, right, result):
                self._journal.clock.pass_evaluates()
        finally:
            self._comparing = False

    def end(self, recorders: Recorders) -> None:
        """The pass has ended: now it is known what it was, and recorders are told."""
        self.turn_off()
        journal = self._journal
        self._look_at_buffers(None)
        phase = journal.clock.pass_ends()
        for told in recorders.pass_ended:
            told(phase)
        if not journal.has_off:
            return
        rows, writer = journal.off, journal.writer
        if phase not in journal.options.phases:
            rows.collect()
            rows.clear()
            return
        rows.step_ended()
        number = self._counts[phase]
        self._counts[phase] = number + 1
        window = self._fill(phase, rows)
        window.add_step(journal.step)
        clock = self._clocks.setdefault(phase, WindowClock())
        room = writer.waiting < QUEUE
        if clock.ends_with(number) and room and writer.hand_over(window):
            del self._windows[phase]
            clock.open(number + 1)

    def _fill(self, phase: str, rows: Rows) -> Sheet:
        """The window that is open in this phase, with the pass in it."""
        catalogue, window = self._journal.catalogue, self._windows.get(phase)
        if window is None or not window.waits(phase):
            window = self._windows[phase] = catalogue.close(rows, phase)
        else:
            window.merge(catalogue.describe(rows, clears=True))
            rows.clear()
        return window

    def turn_off(self) -> None:
        """Loss functions and comparisons are no longer watched."""
        if self._functions is not None:
            self._functions.remove()
        if self._comparisons is not None:
            self._comparisons.remove()

    def finish(self) -> None:
        """Watching ends: windows that are still open are handed over."""
        self.turn_off()
        for phase, window in self._windows.items():
            if window.steps and window.waits(phase):
                self._journal.hand_in(window)


def _depends_on_mode(module: nn.Module) -> bool:
    """Whether a batch norm with statistics of its own, or dropout, is in training mode in it."""
    for part in module.modules():
        if not part.training:
            continue
        if isinstance(part, BatchNorms) and part.track_running_stats:
            return True
        if isinstance(part, Dropouts) and part.p > 0:
            return True
    return False
