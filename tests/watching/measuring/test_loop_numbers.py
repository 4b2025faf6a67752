"""Numbers of the loop: one per step, folded at its end; those on a device come later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from nethook.runs import names
from nethook.watching.measuring.loop_numbers import MORE, LoopNumbers, Pending
from tests.watching.fakes import field, session


@pytest.fixture
def of():
    of = session()
    of.left = []
    of.lull = SimpleNamespace(leave=lambda: of.left.append(of.step))
    of.pending = Pending(of)
    of.numbers = LoopNumbers(of)
    return of


def test_a_count_is_there_in_every_step_and_a_number_where_it_was_set(of):
    of.numbers.count(names.CLIPS)
    of.numbers.count(names.CLIPS, 2)
    of.numbers.set(names.GRAD_NORM, 2.5)
    of.forwards, of.backwards = 3, 1
    of.numbers.end_step(0)
    of.step, of.forwards = 1, 1
    of.numbers.end_step(1)
    assert field(of, names.LOOP, names.CLIPS, "count") == 2
    assert field(of, names.LOOP, names.CLIPS, "max") == 3
    assert field(of, names.LOOP, names.FORWARDS, "mean") == 2
    assert field(of, names.LOOP, names.GRAD_NORM, "count") == 1


def test_norms_are_points_in_steps_that_look(of):
    for of.step in range(3):
        of.looks = of.step != 1
        of.numbers.set(names.GRAD_NORM, float(of.step))
        of.numbers.end_step(of.step)
    assert of.writer.points == [(names.GRAD_NORM, 0.0, 0), (names.GRAD_NORM, 2.0, 2)]


def test_several_numbers_of_a_row_in_one_step_are_all_folded(of):
    row = of.row("@loss", "loss")
    of.train.slot(row)
    for value in (1.0, 2.0, 6.0):
        of.numbers.number(row, value)
    of.numbers.end_step(0)
    assert field(of, "@loss", "loss", "count") == 3
    assert field(of, "@loss", "loss", "mean") == 3.0


def test_nan_counts_as_such_and_ends_the_short_way(of):
    row = of.row("@loss", "loss")
    of.train.slot(row)
    of.numbers.number(row, float("nan"))
    of.numbers.end_step(0)
    assert field(of, "@loss", "loss", "nan") == 1
    assert of.left


def test_beyond_those_that_are_folded_together_each_is_folded_by_itself(of):
    rows = [of.row(f"r{number}", "loss") for number in range(MORE + 2)]
    for number, row in enumerate(rows):
        of.train.slot(row)
        of.numbers.number(row, float(number))
    of.numbers.end_step(0)
    for number in range(MORE + 2):
        assert field(of, f"r{number}", "loss", "mean") == number
    assert of.numbers.index_of(rows[0]) is not None
    assert of.numbers.index_of(rows[-1]) is None


def test_scalars_on_a_device_are_points_of_their_own_steps(of):
    for of.step in range(3):
        of.pending.add("lr", torch.tensor(0.5**of.step))
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
