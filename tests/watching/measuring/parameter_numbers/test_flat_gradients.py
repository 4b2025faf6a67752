"""Gradients of flat parameters: measured, counted, looked through for NaN."""

from __future__ import annotations

import pytest
import torch

from nethook.watching.measuring.parameter_numbers.flat_gradients import MOST_LOOKED, FlatGradients
from nethook.watching.measuring.parameter_numbers.flat_parameters import FlatParameters
from nethook.watching.measuring.parameter_numbers.parameter_slots import ParameterSlots
from tests.watching.fakes import facts_of, field, journal


def made(*grads):
    """Of each parameter the gradient, or None."""
    of = journal()
    facts = facts_of(*[torch.ones(3, 2) for _ in grads])
    for each, grad in zip(facts, grads, strict=True):
        each.parameter.grad = grad
    return of, facts, FlatGradients(FlatParameters(of, facts), ParameterSlots(of), of)


def test_gradients_are_measured_whether_they_lie_flat_or_not():
    of, _, gradients = made(torch.full((3, 2), 2.0), torch.full((2, 3), 4.0).t())
    assert gradients.find(0.5, True) == pytest.approx(24.0)
    assert gradients.fold(0.5) == (0, pytest.approx(6.0))
    assert [field(of, f"p{at}", "param_grads", "mean") for at in range(2)] == [1.0, 2.0]
    gradients.find(1.0, True)
    gradients.fold(1.0)  # the factor is that of this call
    assert [field(of, f"p{at}", "param_grads", "max") for at in range(2)] == [2.0, 4.0]


def test_parameters_with_a_gradient_are_counted_and_those_with_an_empty_one():
    _, facts, gradients = made(torch.ones(3, 2), None, torch.zeros(3, 2))
    for _ in range(2):
        gradients.find(1.0, True)
        assert gradients.empty == 1
        gradients.fold(1.0)
        assert gradients.empty == 2
    gradients.settle()
    assert [each.with_grad for each in facts] == [2, 0, 2]
    assert [each.steps for each in facts] == [2] * 3


@pytest.mark.parametrize("measure", [True, False])
def test_a_gradient_that_does_not_lie_flat_is_one_like_any_other(measure):
    sparse = torch.eye(3, 2).to_sparse()
    flat = torch.ones(3, 2)
    _, facts, gradients = made(flat, flat.t().contiguous().t(), sparse, torch.zeros(2, 3).t(), None)
    for _ in range(2):
        gradients.find(1.0, measure)
        # One has none; that one has zeros is known where it is measured.
        assert gradients.empty == 1 + measure
    gradients.settle()
    assert [each.with_grad for each in facts] == [2, 2, 2, 2, 0]


def test_a_look_measures_nothing():
    of, _, gradients = made(torch.ones(3, 2), torch.ones(2, 3).t())
    assert gradients.find(1.0, False) == 0.0
    assert gradients.look() == 0
    gradients.flag_odd()
    assert of.flags == []
    assert field(of, "p0", "param_grads", "count") == field(of, "p1", "param_grads", "count") == 0


def test_what_is_not_finite_is_told_by_name():
    odd = torch.ones(3, 2)
    odd[1, 1] = float("nan")
    of, _, gradients = made(torch.ones(3, 2), odd)
    gradients.find(1.0, False)
    assert gradients.look() == 1
    gradients.flag_odd()
    assert of.flags == [("p1", "param_grads")]


def test_the_smallest_of_the_first_is_probed():
    of = journal()
    facts = facts_of(torch.ones(9), torch.ones(2), torch.ones(1))
    gradients = FlatGradients(FlatParameters(of, facts), ParameterSlots(of), of)
    assert not gradients.seems_odd(0)  # there is none
    for each in facts:
        each.parameter.grad = torch.ones_like(each.parameter)
    for at, seems_odd in ((0, False), (2, False), (1, True)):
        facts[at].parameter.grad[0] = float("inf")
        assert gradients.seems_odd(0) is seems_odd
    gradients.find_odd()
    assert [address for address, _ in of.flags] == ["p0", "p1", "p2"]
    gradients.settle()
    assert [each.with_grad for each in facts] == [0] * 3  # a probe does not count


def test_a_large_gradient_is_looked_through_by_turns():
    of = journal()
    facts = facts_of(torch.ones(4 * MOST_LOOKED))
    gradients = FlatGradients(FlatParameters(of, facts), ParameterSlots(of), of)
    facts[0].parameter.grad = torch.ones(4 * MOST_LOOKED)
    facts[0].parameter.grad[1] = float("nan")
    found = []
    for _ in range(8):
        gradients.find(1.0, False)
        found.append(gradients.look())
    assert 0 < sum(found) < 8


def test_gradients_before_clipping_are_a_series_of_their_own_and_not_counted():
    of, facts, gradients = made(torch.full((3, 2), 8.0), torch.full((2, 3), 4.0).t())
    gradients.unclipped(0.5)
    assert [field(of, f"p{at}", "unclipped_grads", "mean") for at in range(2)] == [4.0, 2.0]
    assert field(of, "p0", "param_grads", "count") == 0
    gradients.settle()
    assert [(each.steps, each.with_grad) for each in facts] == [(0, 0)] * 2
