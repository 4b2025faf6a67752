"""Every function of torch that a thread calls, from one moment to another."""

from __future__ import annotations

import threading

import pytest
import torch
from torch.nn import functional as F

from nethook.hooks.ops.calls import EveryCall
from nethook.torch_private import function_modes


def seeing() -> tuple[EveryCall, list[str]]:
    names: list[str] = []

    def seen(function, args, kwargs, run):
        names.append(function.__name__)
        torch.zeros(1) + 1  # what we do is not seen
        return run()

    return EveryCall(seen), names


def test_from_one_moment_to_another():
    calls, names = seeing()
    x = torch.ones(2)
    x + 1
    calls.put_on()
    assert calls.on
    F.relu(x) * 2
    assert calls.remove()
    x + 1
    assert names == ["relu", "mul"]
    assert function_modes() == 0
    assert calls.remove()


def test_what_is_returned_and_raised_is_the_function_s():
    calls, _ = seeing()
    calls.put_on()
    try:
        assert torch.equal(torch.ones(2) + 1, torch.full((2,), 2.0))
        with pytest.raises(RuntimeError, match="shape"):
            torch.ones(2).view(3)
    finally:
        calls.remove()


def test_a_call_that_is_under_way_puts_it_back():
    calls, names = seeing()
    loss = torch.ones(2, requires_grad=True).sum()
    ended = []
    loss.register_hook(lambda _: ended.append(calls.remove()))
    calls.put_on()
    loss.backward()
    assert ended == [False]
    assert not calls.on
    torch.ones(2) + 1
    assert names == ["backward"]
    assert calls.remove()
    assert function_modes() == 0


def test_of_one_thread():
    calls, names = seeing()
    calls.put_on()
    other = threading.Thread(target=lambda: torch.ones(2) + 1)
    other.start()
    other.join()
    calls.remove()
    assert names == []
