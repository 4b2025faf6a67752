"""Weights before a step, and what it has added, by turns where memory is short."""

from __future__ import annotations

import pytest
import torch

from nethook.watching.journal import Options
from nethook.watching.measuring.parameter_numbers.flat_parameters import (
    FlatParameters,
    ParametersChangedError,
)
from nethook.watching.measuring.parameter_numbers.flat_weights import FlatWeights
from tests.watching.fakes import facts_of, field, journal

BOTH = ("params", "updates")


def made(*tensors, wanted=BOTH, cap=1 << 20):
    of = journal()
    facts = facts_of(*tensors)
    return of, facts, FlatWeights(FlatParameters(of, facts), Options(wanted, snapshot_cap=cap))


def step(weights, facts, by=0.5):
    weights.read()
    with torch.no_grad():
        for each in facts:
            each.parameter.add_(by)
    weights.find()
    return weights.updates()


def test_weights_and_updates_are_read():
    of, facts, weights = made(torch.full((4,), 2.0), torch.ones(3))
    assert weights.read() == pytest.approx(19.0)
    assert weights.copied
    with torch.no_grad():
        facts[0].parameter.sub_(0.5)
    assert weights.find().tolist() == [each.parameter.data_ptr() for each in facts]
    assert not weights.copied
    assert weights.updates() == pytest.approx(1.0)
    weights.settle()
    assert [each.moved for each in facts] == [[1, 1], [0, 1]]
    assert field(of, "p0", "params", "mean") == 2.0
    assert field(of, "p0", "updates", "mean") == -0.5
    assert (weights.turns, weights.memory) == (1, 128)


def test_under_a_cap_updates_take_turns_and_have_no_sum():
    of, facts, weights = made(torch.ones(16), torch.ones(16), cap=64)
    assert [step(weights, facts) for _ in range(3)] == [None] * 3
    weights.settle()
    assert [each.moved for each in facts] == [[2, 2], [1, 1]]
    assert field(of, "p0", "updates", "count") == 32
    assert field(of, "p1", "params", "count") == 48  # weights are read in each
    assert (weights.turns, weights.memory) == (2, 64)


def test_where_updates_are_not_wanted_nothing_is_copied():
    of, _, weights = made(torch.ones(2), wanted=("params",))
    weights.read()
    assert not weights.copied
    assert field(of, "p0", "params", "count") == 2


def test_weights_that_were_exchanged_after_they_were_read():
    _, facts, weights = made(torch.ones(2))
    weights.read()
    facts[0].parameter.data = torch.ones(3)
    with pytest.raises(ParametersChangedError):
        weights.find()
    assert not weights.copied
