"""One call of a model is kept at a time, until its backward pass."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.examining.batch_facts import facts_of
from nethook.torch_private import function_modes
from nethook.watching.examinations.keeper import Keeper

X = torch.randn(4, 3)


@pytest.fixture
def kept():
    told: list[float] = []
    keeper, model = Keeper(told.append), nn.Linear(3, 2)
    yield keeper, model, told
    keeper.let_go()
    assert not function_modes()


def facts(inputs):
    return facts_of(inputs, (4,), None, None, 1)


def call(keeper, model):
    keeper.keep("net", model, (X,), {})
    keeper.call_begins()
    output = model(X)
    assert keeper.call_ends(model)
    keeper.returned(output)
    return output


def test_the_step_that_was_kept(kept):
    keeper, model, told = kept
    output = call(keeper, model)
    assert keeper.holds
    taken = keeper.take([output.sum()], facts)
    assert taken is not None
    assert (taken.model, taken.module()) == ("net", model)
    assert taken.material.seconds == keeper.forward > 0
    assert torch.equal(taken.material.model.weight, model.weight)
    assert taken.material.model is not model
    assert len(told) == 1
    assert not keeper.holds
    assert keeper.take([output.sum()], facts) is None


def test_another_models_call_is_not_the_one(kept):
    keeper, model, _ = kept
    keeper.keep("net", model, (X,), {})
    assert not keeper.call_ends(nn.Linear(3, 2))
    assert keeper.call_ends(model)


def test_what_is_dropped_is_not_kept_and_its_time_is_told(kept):
    keeper, model, told = kept
    keeper.drop()
    assert told == []
    call(keeper, model)
    keeper.drop()
    assert len(told) == 1
    assert not keeper.holds
    assert not keeper.call_ends(model)


def test_the_model_is_not_kept_alive(kept):
    keeper, _, _ = kept
    model = nn.Linear(3, 2)
    taken = keeper.take([call(keeper, model).sum()], facts)
    assert taken is not None
    del model
    assert taken.module() is None
