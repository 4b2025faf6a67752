"""The hooks around a step: they time themselves, hide from modes, and stop all if they fail."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.overrides import TorchFunctionMode

from nethook.hooks.hook import Owner
from nethook.watching.budget import OTHER
from nethook.watching.fail_open import Guard, WatchWarning
from nethook.watching.hooks.step_hooks import StepBegins, StepEnds
from tests.watching.fakes import schedule


class Session:
    """What the hooks tell."""

    def __init__(self, guard: Guard | None = None, fails: bool = False) -> None:
        guard = guard or Guard(lambda *args: None, lambda: None)
        self.journal = SimpleNamespace(guard=guard)
        self.schedule = schedule()
        self.optimizers = SimpleNamespace(plain=True)
        self.fails = fails
        self.calls = []

    def step_begins(self, optimizer, args, kwargs):
        return self._called("begins", (args, {"closure": 1}))

    def step_ends(self, optimizer):
        return self._called("ends", None)

    def _called(self, name, result):
        torch.zeros(1)  # something that a mode would see
        self.calls.append(name)
        if self.fails:
            raise ValueError("odd")
        return result


def test_they_tell_the_session_and_hand_on_other_arguments():
    of = Session()
    assert StepBegins(Owner("test"), of)(None, (1,), {}) == ((1,), {"closure": 1})
    assert StepEnds(Owner("test"), of)(None, (1,), {}) is None
    assert of.calls == ["begins", "ends"]
    assert of.schedule.spent[OTHER] > 0


def test_the_modes_of_a_script_see_nothing():
    class Seeing(TorchFunctionMode):
        seen = ()

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen = (*self.seen, func)
            return func(*args, **(kwargs or {}))

    of = Session()
    for of.schedule.quiet in (False, True):
        with Seeing() as mode:
            StepBegins(Owner("test"), of)(None, (), {})
            StepEnds(Owner("test"), of)(None, (), {})
        assert mode.seen == ()


@pytest.mark.parametrize("hook", [StepBegins, StepEnds])
def test_without_them_there_is_no_clock(hook):
    of = Session(fails=True)
    with pytest.warns(WatchWarning, match="watching has ended"):
        assert hook(Owner("test"), of)(None, (), {}) is None
    assert not of.journal.guard.alive
    silent = Session(of.journal.guard)
    hook(Owner("test"), silent)(None, (), {})
    assert silent.calls == []
