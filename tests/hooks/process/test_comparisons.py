"""Comparisons of tensors are seen, and what is compared stays the same."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from nethook.hooks.hook import Owner
from nethook.hooks.process.comparisons import Comparisons


@pytest.fixture
def seen():
    calls: list[tuple[Any, ...]] = []
    handle = Comparisons(Owner("test"), lambda *call: calls.append(call))
    handle.put_on()
    yield calls
    handle.remove()


def test_every_way_of_comparing(seen):
    a, b = torch.tensor([1, 2, 3]), torch.tensor([1, 0, 3])
    results = [a == b, a.eq(b), torch.eq(a, b), a != b, a.ne(b), torch.ne(a, b)]
    assert [result.tolist() for result in results] == [[True, False, True]] * 3 + [
        [False, True, False]
    ] * 3
    assert [call[2] is result for call, result in zip(seen, results, strict=True)] == [True] * 6
    assert all(call[0] is a and call[1] is b for call in seen)


def test_numbers_lists_and_subclasses_are_not_told(seen):
    class Own(torch.Tensor):
        pass

    a = torch.tensor([1, 2])
    assert (a == 1).tolist() == [True, False]
    assert (a.as_subclass(Own) == a).tolist() == [True, True]
    assert (a == "text") is False
    assert not seen


def test_a_mode_of_the_users_sees_what_it_sees(seen):
    names: list[str] = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    a, b = torch.ones(2), torch.ones(2)
    with Mode():
        result = a.eq(b)
    assert names == ["eq"]
    assert result.tolist() == [True, True]


def test_nothing_is_left_behind():
    before = {name: vars(torch.Tensor).get(name) for name in ("eq", "__eq__", "ne", "__ne__")}
    equal, hashed = torch.eq, torch.Tensor.__hash__
    handle = Comparisons(Owner("test"), lambda *_: None)
    for _ in range(2):
        handle.put_on()
        assert torch.eq is not equal
        assert copy.deepcopy(torch.ones(1)).eq(torch.ones(1)).item()
        handle.remove()
    assert {name: vars(torch.Tensor).get(name) for name in before} == before
    assert "eq" not in vars(torch.Tensor)
    assert torch.eq is equal
    assert torch.Tensor.__hash__ is hashed
