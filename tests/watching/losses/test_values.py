"""Values of losses: every one is folded, and what those of a step or pass come to is a point."""

from __future__ import annotations

import math

import pytest
import torch

from nethook.runs import names
from nethook.watching.losses.tally import Batch, point_of_step
from nethook.watching.losses.values import LossValues
from nethook.watching.measuring.loop_numbers import LoopNumbers
from tests.watching.fakes import at, field, journal


@pytest.fixture
def of():
    of = journal()
    of.numbers = LoopNumbers(of, point_of_step)
    of.pending = of.numbers.pending
    return of


def end_step(of, values, step=0):
    of.numbers.keep(step, values.take() or [])
    of.numbers.fold(of.numbers.take())


def test_the_mean_of_a_step_is_a_point_and_every_value_is_folded(of):
    values = LossValues(of, of.numbers)
    for value in (1.0, 2.0, 6.0):
        values.trained("train.py:3", Batch(value))
    end_step(of, values)
    assert of.writer.points == [(names.loss_name("train.py:3"), 3.0, 0)]
    assert field(of, names.loss_address("train.py:3"), names.LOSS, "count") == 3
    assert values.take() == []


def test_a_point_says_what_it_is_made_of(of):
    values = LossValues(of, of.numbers)
    for value, samples in ((1.0, 8.0), (4.0, 2.0)):
        values.trained("l", Batch(value, samples))
    end_step(of, values, 5)
    ((name, step, _, *point),) = of.writer.rows
    assert (name, step) == ("loss:l", 5)
    assert point == [1.6, 10.0, 2, 0.0, 16.0, 5.0]  # (8·1 + 2·4) / 10


def test_losses_are_named_in_the_order_in_which_they_came_after_those_of_before(of):
    of.writer.earlier = {"losses": ["old"]}
    values = LossValues(of, of.numbers)
    for name in ("b", "old", "a", "b"):
        values.trained(name, Batch(1.0))
    assert of.writer.infos["losses"] == ["old", "b", "a"]


def test_a_loss_on_a_device_is_a_point_once_it_is_fetched(of):
    values = LossValues(of, of.numbers)
    values.trained("l", Batch(torch.tensor(2.0)))
    end_step(of, values, 0)
    assert of.writer.points == []
    of.pending.fetch()
    assert of.writer.points == [(names.loss_name("l"), 2.0, 0)]
    assert field(of, names.loss_address("l"), names.LOSS, "mean") == 2.0


def test_micro_batches_on_a_device_are_one_point(of):
    values = LossValues(of, of.numbers)
    for value, samples in ((1.0, torch.tensor(3.0)), (2.0, torch.tensor(1.0))):
        values.trained("l", Batch(torch.tensor(value), samples))
    at(of, 7)
    end_step(of, values, 7)
    of.pending.fetch()
    ((name, step, _, value, samples, batches, *_),) = of.writer.rows
    assert (name, step, value, samples, batches) == ("loss:l", 7, 1.25, 4.0, 2)


def test_where_there_is_no_room_for_a_series_nothing_is_kept(of):
    of.row = lambda *args: None
    values = LossValues(of, of.numbers)
    values.trained("l", Batch(1.0))
    end_step(of, values, 0)
    assert (of.writer.points, values.rows) == ([], {})


def test_the_mean_is_that_of_a_precise_sum(of):
    values = LossValues(of, of.numbers)
    for value in (1e16, 1.0, -1e16):
        values.trained("l", Batch(value))
    heard = values.take()
    assert {name for name, _, _ in heard} == {"l"}
    assert point_of_step([batch for _, _, batch in heard]).value == 1 / 3


# -- evaluation ------------------------------------------------------------------------------------


def test_a_pass_is_one_point_over_its_samples(of):
    values = LossValues(of, of.numbers)
    at(of, 40)
    for value, samples in ((1.0, 64.0), (1.0, 64.0), (9.0, 2.0)):
        values.evaluated("l", Batch(value, samples))
    values.pass_ended("eval")
    ((name, step, _, value, samples, batches, divided, total, batch_total),) = of.writer.rows
    assert (name, step) == ("eval_loss:l", 40)
    assert value == pytest.approx((128 + 18) / 130)
    assert (samples, batches, divided, total, batch_total) == (130, 3, 0, 146, 11)
    values.pass_ended("eval")
    assert len(of.writer.rows) == 1


def test_a_pass_that_does_not_evaluate_has_no_point_and_leaves_nothing_for_the_next(of):
    values = LossValues(of, of.numbers)
    values.evaluated("l", Batch(5.0, 1.0))
    values.pass_ended("aux")
    values.evaluated("l", Batch(1.0, 1.0))
    values.pass_ended("eval")
    assert [point[1] for point in of.writer.points] == [1.0]


def test_a_pass_on_a_device_is_a_point_once_it_is_fetched(of):
    values = LossValues(of, of.numbers)
    for value, samples in ((1.0, 3.0), (5.0, torch.tensor(1))):
        values.evaluated("l", Batch(torch.tensor(value), samples))
    values.pass_ended("eval")
    assert of.writer.points == []
    of.pending.fetch()
    assert of.writer.points == [("eval_loss:l", 2.0, 0)]


def test_where_samples_are_unknown_the_mean_is_over_batches(of):
    values = LossValues(of, of.numbers)
    for value in (1.0, 3.0, 8.0):
        values.evaluated("l", Batch(value))
    values.pass_ended("eval")
    ((_, _, _, value, samples, *_),) = of.writer.rows
    assert value == 4.0
    assert math.isnan(samples)
