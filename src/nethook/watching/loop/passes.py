"""Passes without gradient: evaluation, or something else.

A pass is what runs without gradient between two training calls. It is an evaluation if the model is
in evaluation mode, if a loss is taken of what it returns, or if it goes over a run of different
batches (and counts right answers, as it seems); else it is `aux` (a GAN's generator pass, dropout
asked many times about one batch). That is known at its end.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from nethook.hooks.hook import Owner
from nethook.hooks.process.loss_functions import LossFunctions
from nethook.runs import names
from nethook.runs.writing.windowing import WindowClock
from nethook.watching.protocols import PassSession

if TYPE_CHECKING:
    from nethook.stats.rows import Rows
    from nethook.stats.sheet import Sheet


BATCHES: Final = 3
SAMPLES: Final = 4
"""A pass over so many different batches, of so many samples each, is an evaluation. The states of
an environment come one by one."""


class Passes:
    """The pass that is under way, and the windows of passes."""

    def __init__(self, session: PassSession) -> None:
        self._session = session
        self._rows: Rows | None = None
        self.open = False
        self.calls = 0
        self._evaluates = False
        self._windows: dict[str, Sheet] = {}
        self._clocks: dict[str, WindowClock] = {}
        self._counts: dict[str, int] = {"eval": 0, "aux": 0}
        self._losses: LossFunctions | None = None
        self._last_batch: weakref.ref[torch.Tensor] | None = None
        self._batches = 0
        self.on_end: list[Any] = []  # called with the phase

    @property
    def rows(self) -> Rows:
        """The rows of passes; made when there is one."""
        if self._rows is None:
            self._rows = self._session.catalogue.new_rows()
        return self._rows

    @property
    def phase(self) -> str:
        """What the pass under way is taken for so far."""
        return "eval" if self._evaluates else "aux"

    def begin(self, module: nn.Module, args: tuple[Any, ...] = ()) -> None:
        """A call without gradient begins."""
        if not self.open:
            self.open = True
            self.calls = 0
            self._evaluates = False
            self._batches = 0
            self._session.order.note("evaluation")
            if self._losses is None:
                self._losses = LossFunctions(Owner("nethook.watch"), self._saw_loss)
            self._losses.put_on()
        self.calls += 1
        if not module.training:
            self._evaluates = True
        elif not self._evaluates:
            self._note_batch(args)

    def _note_batch(self, args: tuple[Any, ...]) -> None:
        """Counts different batches of several samples; one that is asked about again is one."""
        batch = next((arg for arg in args if isinstance(arg, torch.Tensor)), None)
        if batch is None or not batch.dim() or batch.shape[0] < SAMPLES:
            return
        last = self._last_batch() if self._last_batch is not None else None
        if last is not batch:
            self._last_batch = weakref.ref(batch)
            self._batches += 1
            self._evaluates = self._batches >= BATCHES

    def _saw_loss(
        self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        session = self._session
        try:
            # A training call ends a pass, so where one is open the gradient is not merely
            # switched off for a moment. The loss may be taken inside the model, too.
            watched = self.open and session.guard.alive
            if watched and session.losses.no_grad_loss(kind, args, kwargs, result):
                self._evaluates = True
        except Exception as error:
            session.guard.failed("the losses of passes without gradient", error, self.turn_off)

    def loss(self, name: str, value: torch.Tensor | float) -> None:
        """One value of a loss in this pass."""
        row = self._session.row(names.loss_address(name), names.LOSS)
        if row is None:
            return
        slot = self.rows.slots.get(row) or self.rows.slot(row)
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(value, dtype=torch.float64)
        slot.fold(value)

    def end(self) -> None:
        """The pass has ended: now it is known what it was."""
        self.open = False
        self.turn_off()
        session, phase = self._session, self.phase
        for told in self.on_end:
            told(phase)
        if phase == "eval":
            session.totals["evaluations"] += 1
        if self._rows is None:
            return
        if phase not in session.phases:
            self._rows.collect()
            self._rows.clear()
            return
        self._rows.step_ended()
        number = self._counts[phase]
        self._counts[phase] = number + 1
        window = self._fill(phase, self._rows)
        window.add_step(session.step)
        clock = self._clocks.setdefault(phase, WindowClock())
        if (
            clock.ends_with(number)
            and session.writer.waiting < session.queue
            and session.writer.hand_over(window)
        ):
            del self._windows[phase]
            clock.open(number + 1)

    def _fill(self, phase: str, rows: Rows) -> Sheet:
        """The window that is open in this phase, with the pass in it."""
        catalogue, window = self._session.catalogue, self._windows.get(phase)
        if window is None or not window.waits(phase):
            window = self._windows[phase] = catalogue.close(rows, phase)
        else:
            window.merge(catalogue.describe(rows, clears=True))
            rows.clear()
        return window

    def turn_off(self) -> None:
        """Loss functions are no longer watched."""
        if self._losses is not None:
            self._losses.remove()

    def finish(self) -> None:
        """Watching ends: windows that are still open are handed over."""
        self.turn_off()
        for phase, window in self._windows.items():
            if window.steps and window.waits(phase):
                self._session.hand_in(window)
