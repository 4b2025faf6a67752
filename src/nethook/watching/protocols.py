"""What the watch hands to the loss record and to the flight recorder, and what they may ask of it.

Everything below is called on the training thread, inside `fail_open.guarded`: an exception costs
that part of watching, never the script. None of it may wait for a device, draw random numbers,
or keep a tensor of a graph alive (the flight recorder's ring holds inputs alone).

(a) `torch.autograd.backward` is wrapped (`loop.py`). Before the pass runs, the watch calls
    `LossRecorder.backward(roots, scale)`. The roots are the tensors as they were given; the
    graph is whole, so `root.grad_fn` can be walked. The last nodes of the watched models' outputs
    are marked: `node.metadata.get(OUTPUT_MARK)` is an `OutputMark(model, path)` there, on the nodes
    where a chain from the loss meets what a model returned. Nothing holds the graph.
(b) Torch's loss functions (`torch.nn.functional.LOSSES`) are wrapped while a no-grad pass is
    under way or has just ended; each call goes to `LossRecorder.no_grad_loss(...)`. The return
    value says whether it was a loss, which makes the pass an evaluation.
(c) A tap whose tensor has NaN or infinities calls `FlightRecorder.non_finite(Flag(...))` at once on
    CPU (`inputs` are the arguments of that call), and two steps later, without tensors, elsewhere.
    The recorder is told when outermost calls begin, and when a step is about to be taken and was.
    `Watching.flagged` turns the taps that the budget had left out on for the steps that follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch
from torch import nn

from nethook.addresses.paths import Path
from nethook.watching.fail_open import Guard

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


def mark_node(node: Any, known: dict[Any, OutputMark], key: tuple[str, Any]) -> None:
    """Marks the node of an output; `known` has the marks that there are, by model and path."""
    if node is not None:
        mark = known.get(key)
        if mark is None:
            mark = OutputMark(*key)
            if len(known) < 256:
                known[key] = mark
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
        """Whether this is one of the steps in which samples are taken: 0 to 3, then ever fewer."""

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
    ) -> bool:
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


class FlightRecorder(Protocol):
    """`flight.Flight(watching, batches)`; `batches` is how many steps' inputs its ring keeps."""

    def forward_begins(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """An outermost call in training begins: hold on to its inputs and random states."""

    def non_finite(self, flag: Flag) -> None:
        """NaN or infinities were seen somewhere. The first flag of a step comes first."""

    def backward_begins(self, roots: Sequence[torch.Tensor], fine: bool = False) -> None:
        """A backward pass begins (after `LossRecorder.backward`, which may know it to be fine)."""

    def before_step(self, optimizer: torch.optim.Optimizer, skipped: bool | None) -> None:
        """An optimizer is about to step; `skipped`: a loss scaler has found infinities."""

    def step_ended(self, step: int, skipped: bool | None) -> None:
        """A step has ended; `skipped` is None where only the device knows whether it took place."""

    def close(self) -> None:
        """Watching ends."""
