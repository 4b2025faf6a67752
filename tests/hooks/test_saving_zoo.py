"""Every model of the zoo is saved as it would be without nethook, inside every kind of scope.

Two runs without nethook are compared first: what differs between those proves nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils.hooks import RemovableHandle

import nethook
from tests.zoo import EXHIBITS, HOUSES, Exhibit, Given, Scope, built, loss_of, quiet
from tests.zoo.marks import every_exhibit
from tests.zoo.observe import seed_everything
from tests.zoo.saved import saved_in_every_way

pytestmark = pytest.mark.short

Saved = dict[str, object]


@pytest.fixture(autouse=True)
def _numbers_of_hooks_go_on() -> Iterator[None]:
    """No hook of a later test gets a number that a hook of an earlier one has."""
    before = RemovableHandle.next_id
    yield
    RemovableHandle.next_id = max(before, RemovableHandle.next_id)


def every_module(name: str, module: nn.Module) -> bool:
    return True


def made(exhibit: Exhibit) -> nn.Module:
    """The model, with hooks of its own numbered as every time."""
    RemovableHandle.next_id = 10_000
    return built(exhibit)


def saved_after_a_pass(exhibit: Exhibit, model: nn.Module) -> Saved:
    """What is saved in the middle of everything: after forward and backward."""
    RemovableHandle.next_id = 20_000
    seed_everything()
    output = exhibit.call(model, Given())
    if exhibit.differentiable:
        loss_of(output).backward()
    return saved_in_every_way(model)


def saved_inside(exhibit: Exhibit, scope: Scope) -> Saved:
    model = made(exhibit)
    with quiet(exhibit), _some_are_not_called(), scope(model):
        return saved_after_a_pass(exhibit, model)


def _plain(_: nn.Module) -> AbstractContextManager[None]:
    return nullcontext()


@cache
def expected(exhibit: Exhibit) -> Saved:
    """What two runs without nethook have in common."""
    # A pickle shows whether two equal strings are the same object. The names of the weights of an
    # LSTM are, unless another LSTM is alive. So that all runs are alike, one always is.
    _alive.append(built(exhibit))
    one, two = saved_inside(exhibit, _plain), saved_inside(exhibit, _plain)
    return {way: saved for way, saved in two.items() if one[way] == saved}


_alive: list[nn.Module] = []


def assert_the_same(plain: Saved, saved: Saved, where: str) -> None:
    differ = [way for way, bytes_ in plain.items() if saved[way] != bytes_]
    assert not differ, f"{where}: {differ} differ"


@contextmanager
def _some_are_not_called() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the edit at", UserWarning)
        warnings.filterwarnings("ignore", "the callback at", UserWarning)
        yield


@contextmanager
def _called_back(model: nn.Module) -> Iterator[None]:
    callbacks = nethook.Callbacks(model)
    callbacks.before(every_module)(lambda value: None)
    callbacks.after(every_module)(lambda value: None)
    with callbacks:
        yield


@contextmanager
def _instrumented(model: nn.Module) -> Iterator[None]:
    with nethook.InstrumentedModel(model) as instrumented:
        instrumented.retain_layers(nethook.select(model, every_module))
        yield


def _edited(model: nn.Module) -> AbstractContextManager[Any]:
    nothing = {every_module: lambda value: None}
    return nethook.edit(model, outputs=nothing, strict=False, threads="all")


SCOPES: dict[str, Scope] = {
    "trace": lambda model: nethook.trace(
        model, inputs=True, grads=True, input_grads=True, param_grads=True
    ),
    "trace of operations": lambda model: nethook.trace(model, "**/*"),
    "edit": _edited,
    "Callbacks": _called_back,
    "TraceDict": lambda model: nethook.TraceDict(
        model, list(nethook.select(model, every_module)), retain_input=True
    ),
    "InstrumentedModel": _instrumented,
}


@every_exhibit
def test_a_model_in_a_scope_is_saved_as_without(exhibit: Exhibit) -> None:
    plain = expected(exhibit)
    for name, scope in SCOPES.items():
        assert_the_same(plain, saved_inside(exhibit, scope), f"{exhibit.name} in {name}")


@pytest.mark.parametrize("house", HOUSES, ids=lambda house: house.__name__.rpartition(".")[2])
def test_watched_models_are_saved_as_without(house: ModuleType, tmp_path: Path) -> None:
    exhibits = {each.name: each for each in house.EXHIBITS if all(map(find_spec, each.needs))}
    plain = {name: expected(exhibit) for name, exhibit in exhibits.items()}
    models = {name: made(exhibit) for name, exhibit in exhibits.items()}
    for name, model in list(models.items()):
        if any(map(is_lazy, model.parameters())):  # a watch does not begin with those
            del models[name]
    parameters = [each for model in models.values() for each in model.parameters()]
    optimizer = torch.optim.SGD(dict.fromkeys(parameters), lr=0.1) if parameters else None
    with nethook.watch(models, optimizer, to=tmp_path / "run.db", budget=None) as watch:
        watch.be_silent()
        for name, model in models.items():
            with quiet(exhibits[name]):
                saved = saved_after_a_pass(exhibits[name], model)
            assert_the_same(plain[name], saved, f"{name} in a watch")


def test_most_of_it_can_be_compared() -> None:
    """Otherwise the tests above would pass by comparing nothing."""
    of_each = [expected(exhibit) for exhibit in EXHIBITS if all(map(find_spec, exhibit.needs))]
    for way, share in {"torch.save": 0.7, "pickle by name": 0.95, "state_dict": 0.95}.items():
        compared = [each for each in of_each if isinstance(each.get(way), bytes)]
        assert len(compared) > share * len(of_each)
