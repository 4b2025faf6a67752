"""Values of losses: every one is folded, and the mean of a step is a point."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from nethook.runs import names
from nethook.watching.losses.values import LossValues
from nethook.watching.measuring.loop_numbers import LoopNumbers, Pending
from tests.watching.fakes import field, session


@pytest.fixture
def of():
    of = session()
    of.lull = SimpleNamespace(leave=lambda: None)
    of.pending = Pending(of)
    of.numbers = LoopNumbers(of)
    return of


def test_the_mean_of_a_step_is_a_point_and_every_value_is_folded(of):
    values = LossValues(of)
    for value in (1.0, 2.0, 6.0):
        values.add("train.py:3", value)
    assert values.some
    of.numbers.end_step(0)
    values.step_ended(0)
    assert of.writer.points == [(names.loss_name("train.py:3"), 3.0, 0)]
    assert field(of, names.loss_address("train.py:3"), names.LOSS, "count") == 3
    assert not values.some
    assert values.take() == []


def test_losses_are_named_in_the_order_in_which_they_came_after_those_of_before(of):
    of.writer.earlier = {"losses": ["old"]}
    values = LossValues(of)
    for name in ("b", "old", "a", "b"):
        values.add(name, 1.0)
    assert of.writer.infos["losses"] == ["old", "b", "a"]


def test_a_loss_on_a_device_is_a_point_once_it_is_fetched(of):
    values = LossValues(of)
    values.add("l", torch.tensor(2.0))
    values.step_ended(0)
    assert of.writer.points == []
    of.pending.fetch()
    assert of.writer.points == [(names.loss_name("l"), 2.0, 0)]
    assert field(of, names.loss_address("l"), names.LOSS, "mean") == 2.0


def test_where_there_is_no_room_for_a_series_nothing_is_kept(of):
    of.row = lambda *args: None
    values = LossValues(of)
    values.add("l", 1.0)
    values.step_ended(0)
    assert (of.writer.points, values.rows) == ([], {})


def test_the_mean_is_that_of_a_precise_sum(of):
    values = LossValues(of)
    for value in (1e16, 1.0, -1e16):
        values.add("l", value)
    assert values.take() == [("l", 1 / 3)]
