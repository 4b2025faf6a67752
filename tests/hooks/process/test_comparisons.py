"""Comparisons of tensors are seen, and what is compared stays the same."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

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
    results = [a == b, a.eq(b), a != b, a.ne(b)]
    assert [result.tolist() for result in results] == [[True, False, True]] * 2 + [
        [False, True, False]
    ] * 2
    assert [call[2] is result for call, result in zip(seen, results, strict=True)] == [True] * 4
    assert all(call[0] is a and call[1] is b for call in seen)


def test_numbers_lists_and_subclasses_are_not_told(seen):
    class Own(torch.Tensor):
        pass

    a = torch.tensor([1, 2])
    assert (a == 1).tolist() == [True, False]
    assert (a.as_subclass(Own) == a).tolist() == [True, True]
    assert (a == "text") is False
    assert not seen


class Mode(TorchFunctionMode):
    """Notes which of torch's functions it sees, by identity."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        known = {"eq": torch.Tensor.eq, "==": torch.Tensor.__eq__, "torch.eq": torch.eq}
        self.found += [name for name, function in known.items() if func is function]
        return func(*args, **(kwargs or {}))


def compared_under_a_mode() -> list[str]:
    a, b = torch.ones(2), torch.ones(2)
    with Mode() as mode:
        assert a.eq(b).tolist() == (a == b).tolist() == torch.eq(a, b).tolist() == [True, True]
    return mode.found


def test_a_mode_of_the_users_sees_what_it_sees():
    plain = compared_under_a_mode()
    told: list[Any] = []
    handle = Comparisons(Owner("test"), lambda *call: told.append(call))
    handle.put_on()
    try:
        assert compared_under_a_mode() == plain
        assert not told
        assert torch.ones(1).eq(torch.ones(1))  # and it is on again
        assert len(told) == 1
    finally:
        handle.remove()
    assert {"eq", "=="} <= set(plain)


def test_a_subclass_of_the_users_sees_what_it_sees(seen):
    class Own(torch.Tensor):
        found: ClassVar[list[bool]] = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.found.append(func is torch.Tensor.eq)
            return super().__torch_function__(func, types, args, kwargs or {})

    one = torch.ones(2).as_subclass(Own)
    Own.found.clear()
    assert one.eq(one).all()
    assert Own.found[0]


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_functions_are_scripted(seen):
    def share(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.eq(a, b).float().mean() + a.eq(b).float().mean() + (a != b).float().mean()

    a, b = torch.tensor([1, 2, 3, 4]), torch.tensor([1, 0, 3, 4])
    assert torch.jit.script(share)(a, b) == 1.75


def test_nothing_is_left_behind():
    before = {name: vars(torch.Tensor).get(name) for name in ("eq", "__eq__", "ne", "__ne__")}
    hashed = torch.Tensor.__hash__
    handle = Comparisons(Owner("test"), lambda *_: None)
    for _ in range(2):
        handle.put_on()
        assert "eq" in vars(torch.Tensor)
        assert copy.deepcopy(torch.ones(1)).eq(torch.ones(1)).item()
        handle.remove()
    assert {name: vars(torch.Tensor).get(name) for name in before} == before
    assert "eq" not in vars(torch.Tensor)
    assert torch.Tensor.__hash__ is hashed
