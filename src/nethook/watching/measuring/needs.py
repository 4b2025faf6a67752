"""What each file of this room needs of the session, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from torch import nn

from nethook.runs.writing.writer import RunWriter
from nethook.stats.rows import Rows
from nethook.stats.sheet import Sheet
from nethook.watching.budget import Budget
from nethook.watching.compiled_cost import HiddenCost
from nethook.watching.fail_open import Guarded
from nethook.watching.protocols import LossSession, PointSession, Rowed
from nethook.watching.series import Catalogue


class QuietSteps(Protocol):
    """`clock.fast_path.Lull`, as whoever leaves it."""

    def leave(self) -> None:
        """The rest of this step goes the long way."""


class NumberSession(PointSession, Protocol):
    """For `loop_numbers`."""

    forwards: int
    backwards: int
    looks: bool

    @property
    def lull(self) -> QuietSteps:
        """The short way through steps in which nothing is due."""


class ParameterSession(Rowed, Protocol):
    """For `parameters` and `device_parameters`."""

    wanted: tuple[str, ...]
    world: int
    snapshot_cap: int

    def flag(
        self, address: str, quantity: str, module: nn.Module | None, inputs: Any, value: Any
    ) -> None:
        """NaN or infinities were seen."""


class BatchSession(LossSession, Protocol):
    """For `batches`."""

    training: bool
    forwards: int
    looks: bool
    on_outputs: bool
    catalogue: Catalogue

    def sampled(self) -> bool:
        """Whether samples are taken in this step."""

    def off_rows(self) -> Rows:
        """The rows of passes without gradient."""

    def flag(
        self, address: str, quantity: str, module: nn.Module | None, inputs: Any, value: Any
    ) -> None:
        """NaN or infinities were seen."""


class FlagReader(Protocol):
    """The flight recorder, as `device_flags` tells it."""

    @property
    def call(self) -> Any:
        """The outermost call that is or was under way."""

    def device_flags(
        self, step: int, call: Any, keys: Sequence[tuple[str, str]], skipped: bool | None
    ) -> None:
        """A device tells what was not finite in a step that is over."""


class FlagSession(Guarded, Protocol):
    """For `device_flags`."""

    train: Rows
    catalogue: Catalogue
    skipped: bool | None

    @property
    def flight(self) -> FlagReader:
        """The flight recorder."""


class SnapshotSession(Guarded, Protocol):
    """For `snapshots`."""

    step: int
    training: bool
    spent: list[float]
    writer: RunWriter


class QuietCalls(QuietSteps, Protocol):
    """`clock.fast_path.Lull`, as the taps ask it."""

    on: bool
    inside: nn.Module | None

    def call_begins(self, model: str, module: nn.Module, ref: Any, args: tuple[Any, ...]) -> bool:
        """A watched model is called with one tensor: whether that was all there is to do."""

    def call_ends(self, model: str, output: Any) -> bool:
        """The model that was called has returned, or raised."""


class TapSession(Guarded, Rowed, Protocol):
    """For `taps`: when to measure, and whom to tell of calls."""

    step: int
    depth: int
    training: bool
    in_backward: int
    on_outputs: bool
    on_grads: bool
    wants_grads: bool
    grad_factor: Any
    hook_seconds: float
    spent: list[float]
    totals: dict[str, int]
    hidden: HiddenCost

    @property
    def lull(self) -> QuietCalls:
        """The short way through steps in which nothing is due."""

    def call_begins(
        self,
        model: str,
        module: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grad_mode: bool | None = None,
    ) -> None:
        """A watched model is called."""

    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """A call of a watched model has returned; None where it raised."""

    def called_alone(self, module: nn.Module, grad_mode: bool | None = None) -> bool:
        """A module was called and no watched model as a whole: whether that is training."""

    def count_first_call(self) -> int:
        """The position of a site in the order of first calls."""

    def off_rows(self) -> Rows:
        """The rows of passes without gradient."""

    def off_phase(self) -> str:
        """What the pass without gradient that is under way is taken for so far."""

    def mode_changed(self, address: str, phase: str, mode: bool) -> None:
        """A module is in another mode than in the last pass of this phase."""

    def flag(
        self, address: str, quantity: str, module: nn.Module | None, inputs: Any, value: Any
    ) -> None:
        """NaN or infinities were seen."""

    def note_event(
        self, kind: str, message: str, address: str = "", data: Mapping[str, object] | None = None
    ) -> None:
        """An event at this step that leaves the window as it is."""


class Fetched(Protocol):
    """A recorder that may have numbers on a device."""

    def fetch(self) -> None:
        """A window ends, and devices are waited for anyway."""


class FetchedToTheEnd(Fetched, Protocol):
    """`device_flags`, as the window uses it."""

    window: int

    def flush(self) -> None:
        """Watching ends: waits for what is still on its way."""


class WindowSession(Protocol):
    """For `window`."""

    step: int
    first_step: int
    train: Rows
    catalogue: Catalogue
    writer: RunWriter
    budget: Budget
    on_window: list[Any]

    @property
    def measures(self) -> bool:
        """Whether this step is one that measures something."""

    @property
    def pending(self) -> Fetched:
        """Scalars that are still on a device."""

    @property
    def losses(self) -> Fetched:
        """The loss record."""

    @property
    def flight(self) -> Fetched:
        """The flight recorder."""

    @property
    def device_flags(self) -> FetchedToTheEnd:
        """What devices tell later."""

    def write_facts(self) -> None:
        """Brings sites and totals in the file up to date."""

    def hand_in(self, window: Sheet) -> bool:
        """The last window of a phase goes to the writer."""
