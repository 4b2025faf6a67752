"""The hooks around a step: they time themselves, hide from modes, and stop all if they fail."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.overrides import TorchFunctionMode

from nethook.hooks.hook import Owner
from nethook.watching.budget import OTHER
from nethook.watching.fail_open import Guard, WatchWarning
from nethook.watching.loop.step_hooks import StepBegins, StepEnds
from tests.watching.fakes import session


@pytest.fixture
def of():
    of = session(quiet=False)
    of.guard = Guard(lambda *args: None, lambda: None)
    of.lull = SimpleNamespace(on=False)
    return of


class Steps:
    plain = True

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.calls = []

    def begins(self, optimizer, args, kwargs):
        return self._called("begins", (args, {"closure": 1}))

    def ends(self, optimizer):
        return self._called("ends", None)

    def _called(self, name, result):
        torch.zeros(1)  # something that a mode would see
        self.calls.append(name)
        if self.fails:
            raise ValueError("odd")
        return result


def test_they_tell_the_steps_and_hand_on_other_arguments(of):
    steps = Steps()
    assert StepBegins(Owner("test"), of, steps)(None, (1,), {}) == ((1,), {"closure": 1})
    assert StepEnds(Owner("test"), of, steps)(None, (1,), {}) is None
    assert steps.calls == ["begins", "ends"]
    assert of.spent[OTHER] > 0


def test_the_modes_of_a_script_see_nothing(of):
    class Seeing(TorchFunctionMode):
        seen = ()

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen = (*self.seen, func)
            return func(*args, **(kwargs or {}))

    steps = Steps()
    for of.quiet in (False, True):
        with Seeing() as mode:
            StepBegins(Owner("test"), of, steps)(None, (), {})
            StepEnds(Owner("test"), of, steps)(None, (), {})
        assert mode.seen == ()


@pytest.mark.parametrize("hook", [StepBegins, StepEnds])
def test_without_them_there_is_no_clock(hook, of):
    with pytest.warns(WatchWarning, match="watching has ended"):
        assert hook(Owner("test"), of, Steps(fails=True))(None, (), {}) is None
    assert not of.guard.alive
    silent = Steps()
    hook(Owner("test"), of, silent)(None, (), {})
    assert silent.calls == []
