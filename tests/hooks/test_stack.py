"""What is under way is read off the stack."""

from __future__ import annotations

import signal
import threading

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import around_compiled_call
from nethook.hooks.hook import Owner
from nethook.hooks.stack import (
    calls_under_way,
    error_of_call,
    handled_error,
    raised_by_signal,
    steps_under_way,
)


class Nested(nn.Module):
    """Calls itself so many times, and notes what is under way in the innermost call."""

    def __init__(self, told):
        super().__init__()
        self.told = told

    def forward(self, depth):
        if depth:
            self(depth - 1)
        else:
            self.told()


def test_calls_of_a_model_are_counted():
    found = []
    model = Nested(lambda: found.append(calls_under_way([model])))
    model(0)
    model(3)
    nn.Sequential(model)(1)
    assert found == [1, 4, 2]
    assert calls_under_way([model]) == 0


def test_calls_of_a_compiled_model_are_counted():
    """Its compiled call stands where torch would otherwise make the frame of a call."""
    found = []
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    model.compile(backend="eager")

    def note(*_):
        found.append((calls_under_way([model]), calls_under_way([other])))

    with Attachment(Owner("nethook.test")) as hooks:
        assert around_compiled_call(model, hooks, note, note)
        model(torch.ones(1, 2))
    assert found == [(1, 0)] * 2


def test_calls_in_another_thread_are_seen_where_that_is_asked_for():
    entered, leave = threading.Event(), threading.Event()
    model = Nested(lambda: entered.set() or leave.wait(10))
    thread = threading.Thread(target=model, args=(0,))
    thread.start()
    assert entered.wait(10)
    here, there = calls_under_way([model]), calls_under_way([model], thread.ident)
    leave.set()
    thread.join()
    assert (here, there) == (0, 1)
    assert calls_under_way([model], thread.ident) == 0


def test_steps_of_optimizers_are_counted():
    found = []
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], 0.1)
    optimizer.register_step_pre_hook(lambda *_: found.append(steps_under_way()))
    optimizer.register_step_post_hook(lambda *_: found.append(steps_under_way()))
    optimizer.step()
    outer = torch.optim.SGD([nn.Parameter(torch.ones(2))], 0.1)
    outer.step(optimizer.step)
    assert found == [1, 1, 2, 2]
    assert steps_under_way() == 0


def test_an_interrupted_step_is_under_way_no_more():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], 0.1)
    optimizer.register_step_post_hook(lambda *_: signal.raise_signal(signal.SIGINT))
    # A shell lets what it runs in the background ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            optimizer.step()
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps_under_way() == 0


def test_the_error_of_a_call_is_told_from_one_that_is_being_handled():
    found = []

    def fail():
        raise LookupError

    model = Nested(fail)
    model.register_forward_hook(lambda *_: found.append(error_of_call()), always_call=True)
    with pytest.raises(LookupError) as caught:
        model(0)
    assert found == [caught.value]
    model.told = lambda: None
    try:
        fail()
    except LookupError:
        model(0)  # it returns None, while another error is handled
        assert handled_error() is None
    assert found == [caught.value, None]
    model.told = fail
    try:
        model(0)
    except LookupError:
        assert isinstance(handled_error(), LookupError)


def test_what_a_handler_of_a_signal_raises_is_known():
    def handler(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(TimeoutError) as caught:
            signal.raise_signal(signal.SIGALRM)
        assert raised_by_signal(caught.value)
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(TimeoutError) as caught:
        handler()
    assert not raised_by_signal(caught.value)
