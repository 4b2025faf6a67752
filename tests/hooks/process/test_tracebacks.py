"""A traceback through modules with nethook's hooks is the one without them."""

from __future__ import annotations

import copy
import traceback
from types import TracebackType

import pytest
import torch
from torch import nn

from nethook.hooks.process import tracebacks
from nethook.hooks.process.tracebacks import without_hooked_calls
from nethook.tracing.scope import trace


class Fails(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("inside")


def error_of(model: nn.Module) -> list[TracebackType]:
    try:
        model(torch.ones(1, 2))
    except ValueError as error:
        tb, found = error.__traceback__, []
        while tb is not None:
            found.append(tb)
            tb = tb.tb_next
        return found
    raise AssertionError


def text(entries: list[TracebackType]) -> list[str]:
    """As a traceback prints them, with the marks below the code."""
    linked: TracebackType | None = None
    for each in reversed(entries):
        linked = TracebackType(linked, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return traceback.format_tb(linked)


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2), nn.Sequential(Fails()))


def test_the_detour_is_taken_out(model: nn.Module) -> None:
    bare = text(error_of(model))
    with trace(model):
        hooked = error_of(model)
        assert text(hooked) != bare
        ours = text(without_hooked_calls(hooked))
        # The frames of the trace itself are somebody else's to take out.
        assert [entry for entry in ours if "nethook" not in entry.split(",")[0]] == bare
    assert text(without_hooked_calls(error_of(model))) == bare


def test_the_detour_that_others_made_stays(model: nn.Module) -> None:
    model[1].register_forward_hook(lambda *_: None)
    bare = text(error_of(model))
    with trace(model):
        ours = text(without_hooked_calls(error_of(model)))
        assert [entry for entry in ours if "nethook" not in entry.split(",")[0]] == bare
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        hooked = error_of(model)
        assert text(without_hooked_calls(hooked)) == text(hooked)
    finally:
        handle.remove()


def test_hooks_that_no_call_goes_through_make_no_detour(model: nn.Module) -> None:
    bare = text(error_of(model))
    handle = nn.modules.module.register_module_parameter_registration_hook(lambda *_: None)
    try:
        with trace(model):
            ours = text(without_hooked_calls(error_of(model)))
    finally:
        handle.remove()
    assert [entry for entry in ours if "nethook" not in entry.split(",")[0]] == bare


def test_a_copy_of_a_hooked_model_is_as_one_without_hooks(model: nn.Module) -> None:
    bare = text(error_of(model))
    with trace(model):
        other = copy.deepcopy(model)
    ours = text(without_hooked_calls(error_of(other)))
    assert [entry for entry in ours if "nethook" not in entry.split(",")[0]] == bare


def test_one_hook_of_somebody_else_is_enough_to_leave_it(model: nn.Module) -> None:
    def count(entries: list[str]) -> int:
        return sum("in inner" in entry for entry in entries)

    with trace(model):
        model[1].register_forward_pre_hook(lambda *_: None)
        hooked = error_of(model)
        assert count(text(hooked)) == 3
        assert count(text(without_hooked_calls(hooked))) == 1


def test_what_is_no_module_is_left() -> None:
    assert without_hooked_calls([]) == []
    assert not tracebacks._only_ours(None)
