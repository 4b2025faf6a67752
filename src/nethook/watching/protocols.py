"""What the parts of a watch may ask of its session, and what it tells them.

No recorder knows the session: each takes a protocol that lists all it needs, and the session has
it. So whoever changes a recorder sees what it depends on, and a test can hand it a few attributes.
What the losses, the flight recorder and several rooms need is here; what one room needs is in its
file `needs` (`loop.needs` names recorders, so it stands above them).

Everything is called on the training thread, inside `fail_open`: an exception costs that part of
watching, never the script. None of it may wait for a device, draw random numbers, or keep a tensor
of a graph alive (the flight recorder's ring holds inputs alone).

(a) `torch.autograd.backward` is wrapped (`loop/wrappers.py`). Before the pass runs, the watch calls
    `LossRecorder.backward(roots, scale)`. The roots are the tensors as they were given; the
    graph is whole, so `root.grad_fn` can be walked. The last nodes of the watched models' outputs
    are marked: `node.metadata.get(OUTPUT_MARK)` is an `OutputMark(model, path)` there, on the nodes
    where a chain from the loss meets what a model returned. Nothing holds the graph.
(b) Torch's loss functions (`torch.nn.functional.LOSSES`) are wrapped while a no-grad pass is
    under way or has just ended; each call goes to `LossRecorder.no_grad_loss(...)`. The return
    value says whether it was a loss, which makes the pass an evaluation.
(c) A tap whose tensor has NaN or infinities calls `Flight.non_finite(Flag(...))` at once on CPU
    (`inputs` are the arguments of that call), and two steps later, without tensors, elsewhere.
    The recorder is told when outermost calls begin, and when a step is about to be taken and was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch
from torch import nn

from nethook.addresses.paths import Path
from nethook.runs.writing.writer import RunWriter
from nethook.stats.rows import Rows
from nethook.stats.sheet import Sheet
from nethook.watching.fail_open import Guard, Guarded
from nethook.watching.series import Catalogue

DUE: Final = 1
UNDER_WAY: Final = 2
"""How far the end of a step has come, in `ending`: 0 where none is to be done."""

OUTPUT_MARK: Final = "nethook.output"
"""The key in `node.metadata` of the autograd nodes that made a watched model's outputs."""


@dataclass(frozen=True)
class OutputMark:
    """Which output it was: the model's name ("" for an only one), and where in what it returned."""

    model: str
    path: Path = ()


def mark_node(node: Any, marks: dict[Any, OutputMark], key: tuple[str, Any]) -> None:
    """Marks the node of an output; `known` has the marks that there are, by model and path."""
    if node is not None:
        mark = marks.get(key)
        if mark is None:
            mark = OutputMark(*key)
            if len(marks) < 256:
                marks[key] = mark
        node.metadata[OUTPUT_MARK] = mark


class Watching(Protocol):
    """What the watch offers to its parts; all of it is cheap, and never raises."""

    step: int
    """The step that is under way."""

    @property
    def phase(self) -> str:
        """`train`, `eval` or `aux`: that of the outermost call under way, or of the last one."""

    guard: Guard
    """Who is told of an error."""

    def loss_value(self, name: str, value: torch.Tensor | float, phase: str) -> None:
        """One value of a loss, unscaled; a tensor stays on its device until the window ends."""

    def loss_record(self, name: str, data: Mapping[str, object], phase: str) -> None:
        """How a loss was made (a row of the table `losses`), at this step."""

    def event(
        self, kind: str, message: str, address: str = "", data: Mapping[str, object] | None = None
    ) -> None:
        """An event at this step; it closes the open window."""

    def sampled(self) -> bool:
        """Whether samples are taken in this step: 0 to 15, then 16 in each doubling."""

    def models(self) -> Mapping[str, nn.Module]:
        """The watched models by name; "" for an only one."""

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """The optimizers that were seen, by name: "0", "1" and so on."""

    def run_path(self) -> str:
        """The path of the run file; what the flight recorder saves goes beside it."""


class LossRecorder(Protocol):
    """`losses.Losses(watching)`."""

    def backward(
        self, roots: Sequence[torch.Tensor], scale: torch.Tensor | float | None
    ) -> bool | None:
        """A backward pass is about to begin; `scale` is the factor of a loss scaler, or None.

        Whether every loss was read and is finite.
        """

    def no_grad_loss(
        self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> bool | None:
        """A loss function of torch (`cross_entropy`, …) returned in a pass without gradient."""

    def step_ended(self, step: int) -> None:
        """A step has ended."""


@dataclass(frozen=True, slots=True)
class Flag:
    """NaN or infinities were seen.

    `quantity` is one of `outputs`, `grads`, `param_grads`, `params`, `loss`; `inputs` and `value`
    are there while the call is under way, and None where the flag was read later.
    """

    address: str
    quantity: str
    step: int
    phase: str
    module: nn.Module | None = None
    inputs: Any = None
    value: Any = None


# -- where numbers go ---------------------------------------------------------------------------


class Points(Protocol):
    """`measuring.loop_numbers.Pending`: scalars that are still on a device."""

    def add(self, name: str, value: torch.Tensor, *, keep: int = 0) -> None:
        """A scalar of this step; it is a point in the log once it is known."""

    def fetch(self) -> None:
        """A window ends: what was added is fetched."""


class Numbers(Protocol):
    """`measuring.loop_numbers.LoopNumbers`, as recorders use it."""

    def number(self, row: int, value: float) -> None:
        """One number of a row."""


class Events(Protocol):
    """Where sentences go."""

    step: int
    writer: RunWriter

    def event(
        self, kind: str, message: str, address: str = "", data: Mapping[str, object] | None = None
    ) -> None:
        """An event at this step; it closes the open window."""


class Rowed(Protocol):
    """Where summaries go: the rows of training."""

    train: Rows

    def row(
        self, address: str, quantity: str, info: Mapping[str, object] | None = None
    ) -> int | None:
        """The row of a series; None where there is no more room."""


class PointSession(Rowed, Protocol):
    """For recorders of rows and of points."""

    step: int
    writer: RunWriter

    @property
    def pending(self) -> Points:
        """Scalars that are still on a device."""


class LossSession(PointSession, Protocol):
    """For `losses.values`."""

    @property
    def numbers(self) -> Numbers:
        """The numbers of the step that is under way."""


# -- for `loop.passes`, which `loop.needs` names ------------------------------------------------


class Noting(Protocol):
    """`clock.call_order.CallOrder`, as passes use it."""

    def note(self, call: str) -> None:
        """A call of the loop."""


class PassSession(Guarded, Protocol):
    """For `loop.passes`."""

    step: int
    queue: int
    phases: tuple[str, ...]
    totals: dict[str, int]
    catalogue: Catalogue
    writer: RunWriter

    @property
    def order(self) -> Noting:
        """The order of the loop's calls."""

    @property
    def losses(self) -> LossRecorder:
        """The loss record."""

    def row(
        self, address: str, quantity: str, info: Mapping[str, object] | None = None
    ) -> int | None:
        """The row of a series; None where there is no more room."""

    def hand_in(self, window: Sheet) -> bool:
        """The last window of a phase goes to the writer."""
