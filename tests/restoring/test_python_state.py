"""What Python holds: attributes of modules, containers and generators in them."""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nethook.restoring import python_state
from nethook.restoring.python_state import SavedState, every_module


class Holder(nn.Module):
    """A module with a value of the test's in an attribute."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass
class Data:
    numbers: list[int] = field(default_factory=lambda: [1, 2])


def saved(model: nn.Module) -> SavedState:
    state = SavedState()
    state.add_model(model)
    return state


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1, 2], lambda held: held.append(3)),
        ([[1], [2]], lambda held: held[0].clear()),
        ({"a": 1}, lambda held: held.update(a=2, b=3)),
        (OrderedDict(a=1, b=2), lambda held: held.move_to_end("a")),
        ({1, 2}, lambda held: held.discard(1)),
        (deque([1, 2], maxlen=2), lambda held: held.append(3)),
        (np.arange(3), lambda held: held.fill(7)),
        (([1],), lambda held: held[0].append(2)),
        (SimpleNamespace(a=1), lambda held: setattr(held, "a", 2)),
        (Data(), lambda held: held.numbers.append(3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_container_is_filled_as_it_was_and_is_the_same_object(
    value: Any, change: Callable[[Any], None]
) -> None:
    before = repr(value)
    model = Holder(value)
    state = saved(model)
    change(model.value)
    assert repr(value) != before
    state.put_back()
    assert model.value is value
    assert repr(value) == before


def test_generators_go_on_where_they_were() -> None:
    generators = [random.Random(3), np.random.default_rng(3), torch.Generator().manual_seed(3)]
    model = Holder(generators)
    state = saved(model)

    def draw() -> tuple[float, float, float]:
        python, numpy, of_torch = model.value
        return python.random(), float(numpy.random()), torch.rand(1, generator=of_torch).item()

    first = draw()
    assert draw() != first
    state.put_back()
    assert draw() == first


def test_attributes_are_bound_as_before() -> None:
    model = Holder("old")
    state = saved(model)
    model.value = "new"
    model.count = 1
    state.put_back()
    assert model.value == "old"
    assert not hasattr(model, "count")


def test_a_class_that_was_exchanged_comes_back() -> None:
    model = Holder(None)
    state = saved(model)
    model.__class__ = nn.Identity
    state.put_back()
    assert type(model) is Holder


def test_children_and_buffers_that_were_replaced_come_back_in_their_order() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    children, mean = dict(model.named_children()), model[1].running_mean
    state = saved(model)
    model[0] = nn.ReLU()
    del model[1].running_mean
    model[1].running_mean = torch.full((1,), 9.0)
    model.append(nn.Tanh())
    state.put_back()
    assert dict(model.named_children()) == children
    assert model[1].running_mean is mean
    assert list(model[1].state_dict()) == list(nn.BatchNorm1d(1).state_dict())


def test_objects_of_other_classes_are_opened_only_as_inputs() -> None:
    class Cache:
        def __init__(self) -> None:
            self.keys = [1]

    held, given = Cache(), Cache()
    state = saved(Holder(held))
    state.add_value((given,))
    held.keys.append(2)
    given.keys.append(2)
    state.put_back()
    assert held.keys == [1, 2]
    assert given.keys == [1]


def test_what_is_large_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_state, "MOST_ITEMS", 2)
    monkeypatch.setattr(python_state, "MOST_BYTES", 8)
    small, large, table = [1, 2], [1, 2, 3], np.zeros(2)
    state = saved(Holder([small, large]))
    state.add_value(table)
    small.append(0)
    large.append(0)
    table[0] = 1
    state.put_back()
    assert small == [1, 2]
    assert large == [1, 2, 3, 0]
    assert table.tolist() == [1.0, 0.0]


def test_what_holds_itself_ends() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    state = saved(Holder(ring))
    ring[0] = 2
    state.put_back()
    assert ring[0] == 1
    assert ring[1] is ring


def test_every_module_is_told_apart_by_identity() -> None:
    class Equal(nn.Module):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        def __hash__(self) -> int:
            return 1

    model = nn.Sequential(Equal(), Equal())
    assert len(list(model.modules())) == 2  # torch takes them for one
    modules = every_module(model)
    assert [id(module) for module in modules] == [id(model), id(model[0]), id(model[1])]
    shared = nn.ReLU()
    assert len(every_module(nn.Sequential(shared, shared))) == 2
