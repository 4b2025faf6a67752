"""The hooks before and after every step of an optimizer."""

from __future__ import annotations

import time
from typing import Any

import torch

from nethook.hooks.hook import Owner
from nethook.hooks.modes import unrecorded
from nethook.torch_private import dispatch_modes, function_modes
from nethook.watching.budget import OTHER
from nethook.watching.measuring.taps import WatchHook
from nethook.watching.session import Session

_now = time.perf_counter


class _StepHook(WatchHook):
    """Around the steps of all optimizers."""

    __slots__ = ("session",)

    def __init__(self, owner: Owner, session: Session) -> None:
        super().__init__(owner, "*", session.journal.guard)
        self.session = session

    def turn_off(self) -> None:
        """Without it there is no clock."""
        self.guard.stop()


class StepBegins(_StepHook):
    """Before any optimizer's step."""

    __slots__ = ()

    def __call__(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Reads weights and gradients."""
        session = self.session
        if not self.guard.alive:  # nor once it has failed: see `turn_off`
            return None
        start = _now()
        result = None
        try:
            # A step that measures nothing reads only plain tensors, which nobody notices.
            if (
                session.schedule.quiet
                and session.optimizers.held.plain
                and not (function_modes() or dispatch_modes())
            ):
                result = session.step_begins(optimizer, args, kwargs)
            else:
                result = unrecorded(session.step_begins)(optimizer, args, kwargs)
        except Exception as error:
            self.failed(error)
        session.schedule.spent[OTHER] += _now() - start
        return result


class StepEnds(_StepHook):
    """After any optimizer's step."""

    __slots__ = ()

    def __call__(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Reads updates, and ends the step."""
        session = self.session
        if not self.guard.alive:  # nor once it has failed: see `turn_off`
            return
        start = _now()
        try:
            # A step that measures nothing reads only plain tensors, which nobody notices.
            if (
                session.schedule.quiet
                and session.optimizers.held.plain
                and not (function_modes() or dispatch_modes())
            ):
                session.step_ends(optimizer)
            else:
                unrecorded(session.step_ends)(optimizer)
        except Exception as error:
            self.failed(error)
        session.schedule.spent[OTHER] += _now() - start
