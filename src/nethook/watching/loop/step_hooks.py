"""The hooks before and after every step of an optimizer."""

from __future__ import annotations

import time
from typing import Any

import torch

from nethook.hooks.hook import Owner
from nethook.hooks.modes import unrecorded
from nethook.torch_private import dispatch_modes, function_modes
from nethook.watching import budget
from nethook.watching.loop.needs import ClockSession
from nethook.watching.loop.optimizers import Steps
from nethook.watching.measuring.taps import WatchHook

_now = time.perf_counter


class _StepHook(WatchHook):
    """Around the steps of all optimizers."""

    __slots__ = ("steps",)

    session: ClockSession

    def __init__(self, owner: Owner, session: ClockSession, steps: Steps) -> None:
        super().__init__(owner, "*", session)
        self.steps = steps

    def turn_off(self) -> None:
        """Without it there is no clock."""
        self.session.guard.stop()


class StepBegins(_StepHook):
    """Before any optimizer's step."""

    __slots__ = ()

    def __call__(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Reads weights and gradients."""
        session = self.session
        if self.off or not session.guard.alive:
            return None
        start = _now()
        result = None
        try:
            if session.quiet and self.steps.plain and not (function_modes() or dispatch_modes()):
                if not (session.lull.on and session.lull.step_begins(optimizer, args, kwargs)):
                    result = self.steps.begins(optimizer, args, kwargs)
            else:
                result = unrecorded(self.steps.begins)(optimizer, args, kwargs)
        except Exception as error:
            self.failed(error)
        session.spent[budget.OTHER] += _now() - start
        return result


class StepEnds(_StepHook):
    """After any optimizer's step."""

    __slots__ = ()

    def __call__(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Reads updates, and ends the step."""
        session = self.session
        if self.off or not session.guard.alive:
            return
        start = _now()
        try:
            lull = session.lull
            if lull.on and lull.step_ends(optimizer):
                pass  # and no tensor was asked anything
            elif session.quiet and self.steps.plain and not (function_modes() or dispatch_modes()):
                self.steps.ends(optimizer)
            else:
                unrecorded(self.steps.ends)(optimizer)
        except Exception as error:
            self.failed(error)
        session.spent[budget.OTHER] += _now() - start
