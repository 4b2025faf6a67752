"""What the clock may ask of the session, and what it writes there.

The clock stands above the recorders and below the session: it tells the recorders what happens, and
moves the session from step to step.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

from nethook.watching.budget import Budget
from nethook.watching.clock.call_order import CallOrder
from nethook.watching.flight.recorder import Flight
from nethook.watching.loop.passes import Passes
from nethook.watching.losses.recorder import Losses
from nethook.watching.losses.values import LossValues
from nethook.watching.measuring.device_flags import DeviceFlags
from nethook.watching.measuring.loop_numbers import LoopNumbers, Pending
from nethook.watching.measuring.needs import NumberSession, ParameterSession, QuietCalls, TapSession
from nethook.watching.measuring.window import OpenWindow
from nethook.watching.protocols import Events


class Interrupted(Protocol):
    """`interrupted.Interruptions`, as the hooks use it."""

    error: str

    def look(self, *, call: bool = False, step: bool = False) -> None:
        """A call of the loop begins: what seems to be under way, and is not any more?"""

    def passed(self, call: str, error: BaseException) -> None:
        """An exception leaves a call of the loop."""


class Quiet(QuietCalls, Protocol):
    """`fast_path.Lull`, as the hooks use it."""

    def follow(self, loop: Any) -> None:
        """Says whose loop it is."""

    def zeroed(self, holder: object) -> bool:
        """Gradients are about to be cleared."""

    def backward(self, root: torch.Tensor) -> bool:
        """A backward pass begins."""

    def step_begins(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """An optimizer is about to step."""

    def step_ends(self, optimizer: torch.optim.Optimizer) -> bool:
        """It has stepped."""


class ClockSession(TapSession, NumberSession, ParameterSession, Events, Protocol):
    """For everything in `clock`, but for passes."""

    # The step that is under way.
    clock: str
    called: bool
    ending: int
    optimizer_steps: int
    skipped: bool | None
    mode: bool | None
    modes: dict[str, dict[str, bool]]
    step_began: float
    own_then: float

    # What is due in it.
    samples: bool
    quiet: bool
    on_param_grads: bool
    on_params: bool
    wants_params: bool

    # Loss scalers, ranks and threads.
    scale: torch.Tensor | float | None
    unscale: Any
    averaged: int
    sharded: bool
    lock: AbstractContextManager[Any]
    locked: bool

    # Who is told.
    budget: Budget
    numbers: LoopNumbers
    device_flags: DeviceFlags
    losses: Losses
    loss_values: LossValues
    flight: Flight
    window: OpenWindow
    order: CallOrder
    passes: Passes
    on_gradients: list[Any]
    on_first_call: list[Any]

    @property
    def pending(self) -> Pending:
        """Scalars that are still on a device."""

    @property
    def interruptions(self) -> Interrupted:
        """What an exception has cut short."""

    @property
    def lull(self) -> Quiet:
        """The short way through steps in which nothing is due."""

    def change_clock(self, clock: str) -> None:
        """Something else is what counts as a step from now on."""

    def backward_begins(self, roots: list[torch.Tensor]) -> None:
        """A backward pass is about to run."""

    def mark_output(self, model: str, path: Any, tensor: torch.Tensor) -> None:
        """Marks the node that has made an output."""

    def end_step(self) -> None:
        """A step has ended."""

    def models(self) -> Any:
        """The watched models by name."""

    # Put into its place by `steps` and `loop`.

    def optimizers(self) -> Any:
        """The optimizers that were seen, by name."""

    def patience(self) -> int:
        """Backward passes to wait for a step of an optimizer."""

    def snapshot_turns(self) -> int:
        """Steps until each update was measured."""

    def loop_stepped(self) -> None:
        """An optimizer has stepped."""
