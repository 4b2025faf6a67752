"""Modules that are called, parameters that are made and optimizers that step are told of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from nethook.hooks.audit import audit
from nethook.hooks.listing import global_hooks
from nethook.hooks.newcomers import Newcomers

Told = list[tuple[str, object]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def newcomers(told: Told) -> Iterator[Newcomers]:
    made = Newcomers(
        "test",
        called=lambda module: told.append(("called", module)),
        stepped=lambda optimizer: told.append(("stepped", optimizer)),
        built=lambda: told.append(("built", None)),
    )
    yield made
    made.remove()


def test_calls_are_told_while_it_is_on(newcomers: Newcomers, told: Told) -> None:
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    model(torch.ones(1))
    assert told == []
    newcomers.turn_on()
    newcomers.turn_on()
    assert newcomers.on
    model(torch.ones(1))
    assert told == [("called", model), ("called", model[0]), ("called", model[1])]
    newcomers.turn_off()
    model(torch.ones(1))
    assert len(told) == 3


def test_turned_off_inside_a_call_it_is_off_for_the_rest_of_it(told: Told) -> None:
    def called(module: nn.Module) -> None:
        told.append(("called", module))
        made.turn_off()

    made = Newcomers("test", called=called, stepped=lambda _: None, built=lambda: None)
    made.turn_on()
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    model(torch.ones(1))
    made.remove()
    assert told == [("called", model)]


def test_parameters_and_steps_are_told_at_any_time(newcomers: Newcomers, told: Told) -> None:
    model = nn.Linear(2, 2)
    assert told == [("built", None)] * 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert told[2:] == [("stepped", optimizer)]


def test_they_are_listed_as_nethooks_and_leave_nothing(told: Told) -> None:
    model = nn.ReLU()
    before = (list(global_hooks()), torch.nn.modules.module._has_any_global_hook)
    made = Newcomers("test", called=lambda _: None, stepped=lambda _: None, built=lambda: None)
    made.turn_on()
    assert {info.owner for info in audit(model).ours} == {"test"}
    made.remove()
    made.remove()
    assert (list(global_hooks()), torch.nn.modules.module._has_any_global_hook) == before


def test_what_is_traced_is_left_alone(newcomers: Newcomers, told: Told) -> None:
    newcomers.turn_on()
    model = nn.ReLU()
    with pytest.warns(DeprecationWarning, match="jit"):
        torch.jit.trace(model, torch.ones(1), check_trace=False)
    assert told == []
    torch.compile(lambda x: model(x), backend="eager", fullgraph=True)(torch.ones(1))
    assert told == []
