"""Numbers of the loop: one per step, kept at its end and folded later; those on a device too."""

from __future__ import annotations

import pytest
import torch

from nethook.runs import names
from nethook.watching.measuring.loop_numbers import MORE, LoopNumbers
from tests.watching.fakes import at, field, journal


@pytest.fixture
def of():
    of = journal()
    of.numbers = LoopNumbers(of)
    of.pending = of.numbers.pending
    return of


def end_step(of, step, losses=()):
    """A step whose numbers are folded by themselves."""
    of.numbers.keep(step, list(losses))
    of.numbers.fold(of.numbers.take())
    of.train.step_ended()


def test_a_count_is_there_in_every_step_and_a_number_where_it_was_set(of):
    of.numbers.count(names.CLIPS)
    of.numbers.count(names.CLIPS, 2)
    of.numbers.set(names.GRAD_NORM, 2.5)
    of.clock.forwards, of.clock.backwards = 3, 1
    end_step(of, 0)
    at(of, 1)
    of.clock.forwards = 1
    end_step(of, 1)
    assert field(of, names.LOOP, names.CLIPS, "count") == 2
    assert field(of, names.LOOP, names.CLIPS, "max") == 3
    assert field(of, names.LOOP, names.FORWARDS, "mean") == 2
    assert field(of, names.LOOP, names.GRAD_NORM, "count") == 1


def test_what_one_step_tells_is_not_in_those_beside_it(of):
    for step in range(4):
        at(of, step)
        if step == 1:
            of.numbers.count(names.CLIPS)
            of.numbers.set(names.GRAD_NORM, 2.0)
        of.numbers.keep(step, [])
    of.numbers.fold(of.numbers.take())
    of.numbers.fold(of.numbers.take())
    assert field(of, names.LOOP, names.CLIPS, "count") == 4
    assert field(of, names.LOOP, names.CLIPS, "mean") == 0.25
    assert field(of, names.LOOP, names.GRAD_NORM, "count") == 1
    assert of.writer.points == [(names.GRAD_NORM, 2.0, 1)]


def test_norms_are_points_in_steps_that_have_them(of):
    for step in range(3):
        at(of, step)
        if step != 1:
            of.numbers.set(names.GRAD_NORM, float(step))
        end_step(of, step)
    assert of.writer.points == [(names.GRAD_NORM, 0.0, 0), (names.GRAD_NORM, 2.0, 2)]


def test_several_numbers_of_a_row_in_one_step_are_all_folded(of):
    row = of.row("@loss", "loss")
    of.train.slot(row)
    for value in (1.0, 2.0, 6.0):
        of.numbers.number(row, value)
    end_step(of, 0)
    assert field(of, "@loss", "loss", "count") == 3
    assert field(of, "@loss", "loss", "mean") == 3.0


def test_nan_counts_as_such_and_such_a_step_is_ended_by_itself(of):
    row = of.row("@loss", "loss")
    of.train.slot(row)
    of.numbers.number(row, float("nan"))
    assert of.numbers.irregular
    end_step(of, 0)
    assert field(of, "@loss", "loss", "nan") == 1
    assert not of.numbers.irregular


def test_beyond_those_that_are_folded_together_each_is_folded_by_itself(of):
    rows = [of.row(f"r{number}", "loss") for number in range(MORE + 2)]
    for number, row in enumerate(rows):
        of.train.slot(row)
        of.numbers.number(row, float(number))
    assert of.numbers.irregular
    end_step(of, 0)
    for number in range(MORE + 2):
        assert field(of, f"r{number}", "loss", "mean") == number


def test_steps_that_are_folded_together_count_as_those_that_are_not(of):
    other = journal()
    other.numbers = LoopNumbers(other)
    for each, together in ((of, True), (other, False)):
        row = each.row("@loss", "loss")
        each.train.slot(row)
        for step in range(5):
            at(each, step)
            each.clock.forwards = step
            if step != 3:
                each.numbers.number(row, float(step))
            each.numbers.keep(step, [("l", -1, float(step))])
            each.numbers.keep(step, [("l", -1, float(step))])  # after an interrupt: once
            if not together:
                each.numbers.fold(each.numbers.take())
                each.train.step_ended()
        each.numbers.fold(each.numbers.take())
        each.train.step_ended()
    for quantity in (names.FORWARDS, names.CLIPS):
        for name in ("count", "mean", "min", "max"):
            mine = field(of, names.LOOP, quantity, name)
            assert mine == field(other, names.LOOP, quantity, name)
    assert of.train.seen.tolist() == other.train.seen.tolist()
    assert of.train.seen[of.row("@loss", "loss")] == 4
    assert of.writer.points == other.writer.points


def test_scalars_on_a_device_are_points_of_their_own_steps(of):
    for step in range(3):
        at(of, step)
        of.pending.add("lr", torch.tensor(0.5**step))
    of.pending.add("mark", torch.tensor((1 << 52) - 1))
    assert (len(of.pending), of.writer.points) == (4, [])
    of.pending.fetch()
    assert of.writer.points == [
        ("lr", 1.0, 0), ("lr", 0.5, 1), ("lr", 0.25, 2), ("mark", float((1 << 52) - 1), 2),
    ]  # fmt: skip
    assert len(of.pending) == 0
    of.pending.fetch()
    assert len(of.writer.points) == 4


def test_norms_on_a_device_are_rows_and_points(of):
    of.numbers.later({})
    of.numbers.later({names.GRAD_NORM: torch.tensor(3.0), names.UPDATE_RATIO: torch.tensor(0.5)})
    of.pending.fetch()
    assert field(of, names.LOOP, names.GRAD_NORM, "mean") == 3.0
    assert [name for name, _, _ in of.writer.points] == [names.GRAD_NORM, names.UPDATE_RATIO]
