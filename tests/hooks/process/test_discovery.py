"""Modules that are called, parameters that are made and optimizers that step are told of."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from nethook.hooks.audit import audit
from nethook.hooks.process.discovery import Discovery, undiscovered
from nethook.hooks.registries import global_hooks
from tests.hooks.common import Spy

Told = list[tuple[str, object]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def newcomers(told: Told) -> Iterator[Discovery]:
    made = Discovery(
        "test",
        called=lambda module, _: told.append(("called", module)),
        stepped=lambda optimizer: told.append(("stepped", optimizer)),
        built=lambda: told.append(("built", None)),
    )
    yield made
    made.remove()


def test_calls_are_told_while_it_is_on(newcomers: Discovery, told: Told) -> None:
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
    def called(module: nn.Module, _: object) -> None:
        told.append(("called", module))
        made.turn_off()

    made = Discovery("test", called=called, stepped=lambda _: None, built=lambda: None)
    made.turn_on()
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    model(torch.ones(1))
    made.remove()
    assert told == [("called", model)]


def test_parameters_and_steps_are_told_at_any_time(newcomers: Discovery, told: Told) -> None:
    model = nn.Linear(2, 2)
    assert told == [("built", None)] * 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert told[2:] == [("stepped", optimizer)]


def test_they_are_listed_as_nethooks_and_leave_nothing(told: Told) -> None:
    model = nn.ReLU()
    before = (list(global_hooks()), torch.nn.modules.module._has_any_global_hook)
    made = Discovery("test", called=lambda *_: None, stepped=lambda _: None, built=lambda: None)
    made.turn_on()
    assert {info.owner for info in audit(model).ours} == {"test"}
    made.remove()
    made.remove()
    assert (list(global_hooks()), torch.nn.modules.module._has_any_global_hook) == before


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_what_is_traced_is_left_alone(newcomers: Discovery, told: Told) -> None:
    newcomers.turn_on()
    model = nn.ReLU()
    torch.jit.trace(model, torch.ones(1), check_trace=False)
    assert told == []
    torch.compile(lambda x: model(x), backend="eager", fullgraph=True)(torch.ones(1))
    assert told == []


def test_what_is_run_and_trained_unmet_is_told_to_nobody(newcomers: Discovery, told: Told) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    newcomers.turn_on()
    told.clear()

    def train() -> None:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    with contextlib.suppress(KeyError), undiscovered():
        train()
        with undiscovered():
            train()
        train()
        raise KeyError
    assert told == []
    train()
    assert told == [("called", model), ("stepped", optimizer)]


def test_before_torch_compiles_it_is_told_while_it_is_on(newcomers: Discovery) -> None:
    compiled: list[bool] = []
    newcomers.see_compiling(lambda: compiled.append(newcomers.on))

    def compile_and_run(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        torch.compile(function, backend="eager", fullgraph=True)(torch.ones(1))

    compile_and_run(lambda x: x + 1)
    assert compiled == []
    newcomers.turn_on()
    compile_and_run(lambda x: x + 2)
    assert compiled == [True]
    newcomers.turn_off()
    compile_and_run(lambda x: x + 3)
    newcomers.turn_on()
    newcomers.remove()
    compile_and_run(lambda x: x + 4)
    assert compiled == [True]


def test_only_the_global_hooks_of_others_make_torch_warn(newcomers: Discovery) -> None:
    model = torch.compile(nn.ReLU(), backend="eager")
    newcomers.turn_on()
    model(torch.ones(1))  # a warning would be an error here
    ours = nn.modules.module.register_module_parameter_registration_hook(lambda *_: None)
    assert not nn.modules.module._has_any_global_hook()
    ours.remove()
    theirs = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert nn.modules.module._has_any_global_hook()
    finally:
        theirs.remove()
    newcomers.turn_off()
    assert not nn.modules.module._has_any_global_hook()


class Takes(nn.Module):
    def forward(self, x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return x * scale


@pytest.mark.parametrize("with_kwargs", [True, False])
@pytest.mark.parametrize("others", [True, False])
def test_a_hook_that_is_put_on_at_the_first_call_is_called_for_it(
    with_kwargs: bool, others: bool
) -> None:
    model = Takes()
    spy = Spy()
    theirs: list[object] = []
    hooks: list[RemovableHandle] = []

    def called(module: nn.Module, _: object) -> None:
        made.turn_off()
        hooks.append(module.register_forward_pre_hook(spy, with_kwargs=with_kwargs))
        if others:
            hooks.append(module.register_forward_pre_hook(lambda *given: theirs.append(given)))

    before: list[object] = []
    model.register_forward_pre_hook(lambda *given: before.append(given))
    made = Discovery("test", called=called, stepped=lambda _: None, built=lambda: None)
    made.turn_on()
    x = torch.ones(1)
    model(x, scale=2.0)
    made.remove()
    given = (model, (x,), {"scale": 2.0}) if with_kwargs else (model, (x,))
    assert spy.seen == [given]
    assert theirs == []  # as torch does: those of others are called from the next call on
    assert len(before) == 1
    model(x, scale=2.0)
    assert spy.seen == [given, given]


def test_backward_passes_are_seen_while_it_is_on() -> None:
    passed: list[list[torch.Tensor]] = []
    original = torch.autograd.backward
    made = Discovery(
        "test", called=lambda *_: None, stepped=lambda _: None, built=lambda: None,
        passed=passed.append,
    )  # fmt: skip
    x = torch.ones(2, requires_grad=True)
    made.turn_on()
    loss = (3 * x).sum()
    loss.backward()
    first, second = x.sum(), (x * x).sum()
    torch.autograd.backward([first, second])
    made.turn_off()
    x.sum().backward()
    made.remove()
    assert [[id(root) for root in roots] for roots in passed] == [
        [id(loss)], [id(first), id(second)]
    ]  # fmt: skip
    assert x.grad is not None
    assert x.grad.tolist() == [7.0, 7.0]  # 3, then 1 and 2, then 1
    assert torch.autograd.backward is original
