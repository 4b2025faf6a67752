"""Values of losses: every one is folded, and the mean of a step is a point."""

from __future__ import annotations

import pytest
import torch

from nethook.runs import names
from nethook.stats.fields import INDEX
from nethook.watching.losses.values import LossValues
from nethook.watching.measuring.loop_numbers import LoopNumbers
from tests.watching.fakes import field, journal


@pytest.fixture
def of():
    of = journal()
    of.numbers = LoopNumbers(of)
    return of


def end_step(of, values):
    of.numbers.keep(of.step, values.take())
    of.numbers.fold(of.numbers.take())


def test_the_mean_of_a_step_is_a_point_and_every_value_is_folded(of):
    values = LossValues(of, of.numbers)
    for value in (1.0, 2.0, 6.0):
        values.add("train.py:3", value, "train")
    end_step(of, values)
    assert of.writer.points == [(names.loss_name("train.py:3"), 3.0, 0)]
    assert field(of, names.loss_address("train.py:3"), names.LOSS, "count") == 3
    assert values.take() == []


def test_losses_are_named_in_the_order_in_which_they_came_after_those_of_before(of):
    of.writer.earlier = {"losses": ["old"]}
    values = LossValues(of, of.numbers)
    for name in ("b", "old", "a", "b"):
        values.add(name, 1.0, "train")
    assert of.writer.infos["losses"] == ["old", "b", "a"]


def test_a_loss_on_a_device_is_a_point_once_it_is_fetched(of):
    values = LossValues(of, of.numbers)
    values.add("l", torch.tensor(2.0), "train")
    end_step(of, values)
    assert of.writer.points == []
    of.numbers.pending.fetch()
    assert of.writer.points == [(names.loss_name("l"), 2.0, 0)]
    assert field(of, names.loss_address("l"), names.LOSS, "mean") == 2.0


def test_where_there_is_no_room_for_a_series_nothing_is_kept(of):
    of.row = lambda *args: None
    values = LossValues(of, of.numbers)
    values.add("l", 1.0, "train")
    end_step(of, values)
    assert (of.writer.points, values.rows) == ([], {})


def test_the_mean_is_that_of_a_precise_sum(of):
    values = LossValues(of, of.numbers)
    for value in (1e16, 1.0, -1e16):
        values.add("l", value, "train")
    assert values.take() == [("l", 1 / 3)]


def test_losses_of_evaluations_are_folded_into_rows_of_their_own(of):
    values = LossValues(of, of.numbers)
    for value in (1.0, torch.tensor(3.0)):
        values.add("l", value, "eval")
    assert values.take() == []
    row = of.row(names.loss_address("l"), names.LOSS)
    of.off.rows.collect()
    assert of.off.rows.matrix[row, INDEX["mean"]] == 2.0
    assert of.train.rows.matrix[row, INDEX["count"]] == 0
