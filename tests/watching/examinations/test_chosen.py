"""Steps that wait to be examined."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn

from nethook.examining import limits
from nethook.examining.batch_facts import facts_of
from nethook.watching.examinations import chosen as module
from nethook.watching.examinations.chosen import ChosenSteps, bytes_of, device_of, why_no_room
from nethook.watching.examinations.keeper import Keeper, Taken

X = torch.randn(4, 3)


@pytest.fixture
def taken() -> Taken:
    keeper, model = Keeper(lambda seconds: None), nn.Sequential(nn.Linear(3, 2), nn.Dropout())
    model[1].eval()
    keeper.keep("net", model, (X,), {})
    keeper.call_begins()
    output = model(X)
    keeper.returned(output)
    step = keeper.take([output.sum()], lambda inputs: facts_of(inputs, (4,), None, None, 1))
    keeper.let_go()
    assert step is not None
    return step


def test_a_step_is_taken_once(taken):
    steps = ChosenSteps()
    steps.add(taken, "train.py:9")
    chosen = steps.take()
    assert chosen is not None
    assert (chosen.model, chosen.line, chosen.held) == ("net", "train.py:9", True)
    assert chosen.modes == [True, True, False]
    assert steps.take() is None


def test_a_large_batch_is_not_held_until_the_end(taken, monkeypatch):
    monkeypatch.setattr(module, "MOST_HELD", bytes_of((X,)) - 1)
    steps = ChosenSteps()
    steps.add(taken, "train.py:9")
    assert steps.ready is not None
    assert not steps.ready.held


def test_until_the_end_no_copy_of_the_model_is_held(taken):
    steps = ChosenSteps()
    steps.add(taken, "train.py:9")
    chosen = steps.take()
    copy = weakref.ref(chosen.material.model)
    steps.keep_for_the_end(chosen, [])
    (later,) = steps.later
    assert list(later.material.model.parameters()) == []
    assert (later.material.output, later.material.loss) == (None, None)
    assert torch.equal(later.material.inputs.args[0], X)
    assert later.modes == chosen.modes
    assert copy() is chosen.material.model  # the step itself has it, as long as it is examined
    steps.let_go()
    assert (steps.ready, steps.later) == (None, [])


def test_room_is_looked_for_before_a_step_is_run_again(monkeypatch):
    model = nn.Linear(3, 2)
    loss = model(X).sum()
    assert why_no_room(model, [loss]) == ""
    monkeypatch.setattr(limits, "free_bytes", lambda device: 1)
    assert "are free" in why_no_room(model, [loss])


def test_bytes_and_devices():
    assert bytes_of({"a": [torch.zeros(3)], "b": (torch.zeros(2, dtype=torch.int64),)}) == 28
    assert device_of(nn.Linear(2, 2)) == torch.device("cpu")
    assert device_of(nn.ReLU()) is None
