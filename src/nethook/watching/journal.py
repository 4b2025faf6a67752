"""Where recorders write: the rows of the open window, the log, events, and what the run is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn

from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from nethook.stats.rows import Rows
from nethook.stats.sheet import Sheet
from nethook.watching.clock.clock import Clock
from nethook.watching.fail_open import Guard
from nethook.watching.schedule import Schedule
from nethook.watching.series import Catalogue

SNAPSHOT_CAP = 256 << 20
"""Bytes of weights that are kept from before a step to after it; above, parameters take turns."""


@dataclass
class Options:
    """What was asked for when the watch was made."""

    wanted: tuple[str, ...] = ("outputs", "grads", "params", "param_grads", "updates")
    """Quantities to measure."""
    phases: tuple[str, ...] = ("train", "eval")
    """Phases to keep."""
    world: int = 1
    """Ranks of the run."""
    snapshot_cap: int = SNAPSHOT_CAP

    @property
    def wants_params(self) -> bool:
        """Whether weights are read."""
        return "params" in self.wanted or "updates" in self.wanted


class Flags(Protocol):
    """The flight recorder, as whoever sees NaN or infinities tells it."""

    def flag(
        self, address: str, quantity: str, module: nn.Module | None, inputs: Any, value: Any
    ) -> None:
        """NaN or infinities were seen: `inputs` and `value` while the call is under way."""


class Journal:
    """The run that is being written, for the step that is under way.

    Arguments:
        writer: of the run.
        clock: which step it is.
        schedule: what is due in it.
        options: what was asked for.
        capacity: series.
    """

    def __init__(
        self,
        writer: RunWriter,
        clock: Clock,
        schedule: Schedule,
        options: Options,
        capacity: int,
    ) -> None:
        self.writer = writer
        self.clock = clock
        self.schedule = schedule
        self.options = options
        self.guard = Guard(self._tell_failure, self._give_up)
        self.on_give_up: list[Callable[[], object]] = []
        """What takes hooks off when watching is given up."""
        self.catalogue = Catalogue(writer, capacity)
        self.train = self.catalogue.new_rows()
        """The rows of training."""
        self._off: Rows | None = None
        self.one_batch = False
        """Whether all steps have one batch on purpose: that it comes again says nothing of it."""
        self.eventful = False
        """Whether something has happened in this step: then the window ends with it."""

    @property
    def step(self) -> int:
        """The step that is under way."""
        return self.clock.step

    @property
    def phase(self) -> str:
        """The phase of the call that is under way, or was last."""
        return self.clock.phase

    @property
    def has_off(self) -> bool:
        """Whether anything was measured in a pass without gradient."""
        return self._off is not None

    @property
    def off(self) -> Rows:
        """The rows of passes without gradient; made when there is one."""
        if self._off is None:
            self._off = self.catalogue.new_rows()
        return self._off

    def row(
        self, address: str, quantity: str, info: Mapping[str, object] | None = None
    ) -> int | None:
        """The row of a series; None where there is no more room."""
        return self.catalogue.row(address, quantity, info)

    def sampled(self) -> bool:
        """Whether samples are taken in this step."""
        return self.schedule.samples

    def run_path(self) -> str:
        """The path of the run file; what the flight recorder saves goes beside it."""
        return str(self.writer.path)

    def event(
        self, kind: str, message: str, address: str = "", data: Mapping[str, object] | None = None
    ) -> None:
        """An event at this step; it closes the open window."""
        self.eventful = True
        self.note_event(kind, message, address, data)

    def note_event(
        self, kind: str, message: str, address: str = "", data: Mapping[str, object] | None = None
    ) -> None:
        """An event at this step that leaves the window as it is."""
        self.writer.event(kind, self.clock.step, message, address, data)

    def loss_record(self, name: str, data: Mapping[str, object], phase: str) -> None:
        """How a loss was made, at this step."""
        self.writer.loss(name, self.clock.step, data, phase)

    def hand_in(self, window: Sheet) -> bool:
        """The last window of a phase: it would be lost to a writer that is behind."""
        if self.writer.waiting:
            self.writer.flush()
        return self.writer.hand_over(window, "end")

    def _tell_failure(self, name: str, error: str, trace: str) -> None:
        said = f"{name} failed and is off: {error}"
        data = {"where": name, "error": error, "traceback": trace}
        self.writer.event(names.FAILED, self.clock.step, said, "", data)

    def _give_up(self) -> None:
        for take_off in self.on_give_up:
            take_off()
