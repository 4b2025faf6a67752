"""Parameters that do not lie flat; tests/modes has those on a device."""

from __future__ import annotations

import pytest
import torch

from nethook.watching.measuring.parameter_numbers.one_by_one import OneByOne
from nethook.watching.measuring.parameter_numbers.parameter_slots import ParameterSlots
from tests.watching.fakes import facts_of, field, journal


def made(*tensors, wanted=("params", "updates")):
    of = journal()
    of.options.wanted = wanted
    facts = facts_of(*tensors)
    return of, facts, OneByOne(of, ParameterSlots(of), facts)


def twos(*shape):
    return torch.full(shape, 2.0).t()


def test_weights_and_updates_are_added_to_what_was_handed_in():
    of, [facts], others = made(twos(2, 3))
    assert others.weights(1.0) == pytest.approx(25.0)
    assert others.copied
    assert others.memory == 24
    with torch.no_grad():
        facts.parameter.sub_(1.0)
    assert others.updates(0.5) == pytest.approx(6.5)
    assert others.memory == 0
    assert facts.moved == [1, 1]
    assert field(of, "p0", "params", "mean") == 2.0
    assert field(of, "p0", "updates", "mean") == -1.0
    assert others.updates(0.5) == 0.5  # nothing is known of what it was


def test_bytes_have_updates_as_well():
    of, [facts], others = made(torch.ones(4, 2).to(torch.float8_e4m3fn).t())
    others.weights(0.0)
    facts.parameter.data.copy_(torch.full((2, 4), 3.0))
    assert others.updates(0.0) == pytest.approx(32.0)
    assert field(of, "p0", "updates", "mean") == 2.0


@pytest.mark.parametrize(
    "tensor", [torch.ones(2).to_sparse(), torch.ones(1).expand(2**40)], ids=["sparse", "repeats"]
)
def test_what_cannot_be_copied_has_no_update(tensor):
    _, _, others = made(twos(2, 3), tensor)
    others.weights(0.0)
    assert not others.copied
    assert others.memory == 24
    others.updates(0.0)


def test_no_copies_where_updates_are_not_wanted():
    _, _, others = made(twos(2, 3), wanted=("params",))
    others.weights(0.0)
    assert others.memory == 0


@pytest.mark.parametrize("measure", [True, False])
def test_gradients_are_counted_and_may_be_measured(measure):
    of, facts, others = made(twos(2, 3), twos(2, 3))
    facts[0].parameter.grad = twos(2, 3)
    square = others.gradients(0.5, measure, 1.0)
    assert square == pytest.approx(7.0 if measure else 1.0)
    assert others.missing == 1
    assert [(each.steps, each.with_grad) for each in facts] == [(1, 1), (1, 0)]
    assert field(of, "p0", "param_grads", "count") == (6 if measure else 0)


def test_gradients_before_clipping_are_not_counted():
    of, facts, others = made(twos(2, 3), twos(2, 3))
    facts[0].parameter.grad = twos(2, 3)
    others.unclipped(0.5)
    assert field(of, "p0", "unclipped_grads", "mean") == 1.0
    assert [(each.steps, each.with_grad) for each in facts] == [(0, 0)] * 2


def test_cosines_of_two_updates_in_a_row():
    of, [facts], others = made(torch.zeros(2, 2).t())
    others.look(0, False)
    moves = [
        torch.tensor([[1.0, 0], [0, 0]]),
        torch.tensor([[1.0, 1.0], [0, 0]]),
        torch.zeros(2, 2),
    ]
    for step, move in enumerate(moves, start=1):
        with torch.no_grad():
            facts.parameter.add_(move)
        others.look(step, True)
    assert field(of, "p0", "update_cosine", "count") == 1  # none where it did not move
    assert field(of, "p0", "update_cosine", "mean") == pytest.approx(0.5**0.5)
    others.look(9, False)
    others.look(10, True)
    assert field(of, "p0", "update_cosine", "count") == 1


def test_nothing_of_the_cpu_is_away():
    _, _, others = made(twos(2, 3), torch.ones(2, device="meta"))
    assert others.away == []
