"""Weights, gradients and updates of some parameters, against torch in float64."""

from __future__ import annotations

import math

import pytest
import torch

from nethook.watching.measuring.parameters import ParametersChangedError, ParameterSet
from tests.watching.fakes import facts_of, field, journal


def made(*tensors: torch.Tensor, **more):
    of = journal(**more)
    facts = facts_of(*tensors)
    return of, facts, ParameterSet(of, of, facts)


def test_it_and_its_parts_have_few_attributes():
    _, _, parameters = made(torch.ones(3))
    parts = [
        part for part in vars(parameters).values() if ".parameter_numbers." in type(part).__module__
    ]
    assert len(parts) == 6
    assert len(vars(parameters)) <= 15
    assert max(len(vars(part)) for part in parts) <= 10


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)], ids=["flat", "transposed"])
def test_weights_gradients_and_updates(shape):
    torch.manual_seed(0)
    weight = torch.randn(4, 3) if shape == (4, 3) else torch.randn(4, 3).t()
    of, [facts], parameters = made(weight.clone(memory_format=torch.preserve_format))
    grad = torch.randn(shape)
    facts.parameter.grad = grad.clone()
    parameters.weights()
    parameters.gradients(1.0, True)
    with torch.no_grad():
        facts.parameter.add_(grad, alpha=-0.1)
    parameters.updates()
    update = facts.parameter.detach().double() - weight.double()
    assert field(of, "p0", "params", "mean") == pytest.approx(weight.double().mean().item())
    assert field(of, "p0", "param_grads", "max") == pytest.approx(grad.max().item())
    assert field(of, "p0", "updates", "min") == pytest.approx(update.min().item(), rel=1e-6)
    assert parameters.grad_square == pytest.approx(grad.double().square().sum().item())
    assert parameters.weight_square == pytest.approx(weight.double().square().sum().item())
    assert parameters.update_square == pytest.approx(update.square().sum().item(), rel=1e-5)


def test_a_loss_scale_is_taken_out_of_gradients():
    of, [facts], parameters = made(torch.ones(3))
    facts.parameter.grad = torch.full((3,), 8.0)
    parameters.gradients(0.25, True)
    assert field(of, "p0", "param_grads", "mean") == 2.0
    assert parameters.grad_square == pytest.approx(12.0)


def test_gradients_that_are_missing_or_zero_are_counted_as_empty():
    _, facts, parameters = made(torch.ones(2), torch.ones(2), torch.ones(2), torch.ones(2))
    facts[0].parameter.grad = torch.ones(2)
    facts[1].parameter.grad = torch.zeros(2)
    parameters.gradients(1.0, True)
    assert parameters.empty == 0.75
    parameters.settle()
    assert [each.with_grad for each in facts] == [1, 1, 0, 0]
    assert [each.steps for each in facts] == [1] * 4


@pytest.mark.parametrize("measure", [True, False])
def test_nan_in_a_gradient_is_flagged_whether_it_is_measured_or_not(measure):
    of, facts, parameters = made(torch.ones(2), torch.ones(2))
    for each in facts:
        each.parameter.grad = torch.ones(2)
    facts[1].parameter.grad[0] = float("nan")
    parameters.gradients(1.0, measure)
    assert of.flags == [("p1", "param_grads")]


def test_parameters_that_moved_are_counted():
    _, facts, parameters = made(torch.ones(3), torch.ones(3))
    for _ in range(2):
        parameters.weights()
        with torch.no_grad():
            facts[0].parameter.mul_(0.5)
        parameters.updates()
    parameters.settle()
    assert [each.moved for each in facts] == [[2, 2], [0, 2]]


def test_the_cosine_of_two_updates_in_a_row():
    of, [facts], parameters = made(torch.zeros(4))
    moves = [torch.tensor([1.0, 0, 0, 0]), torch.tensor([1.0, 1.0, 0, 0])]
    parameters.look(0)
    for step, move in enumerate(moves, start=1):
        with torch.no_grad():
            facts.parameter.add_(move)
        parameters.look(step)
    expected = torch.nn.functional.cosine_similarity(*moves, dim=0).item()
    assert field(of, "p0", "update_cosine", "mean") == pytest.approx(expected, rel=1e-6)


def test_memory_that_was_exchanged_makes_the_set_anew():
    _, [facts], parameters = made(torch.ones(3))
    facts.parameter.data = torch.ones(5)
    with pytest.raises(ParametersChangedError):
        parameters.weights()


def test_sums_are_those_of_all_parameters_whether_they_lie_flat_or_not():
    torch.manual_seed(0)
    tensors = [torch.randn(3, 4), torch.randn(5, 2).t(), torch.randn(6)]
    _, facts, parameters = made(*[each.clone() for each in tensors])
    assert parameters.flat == [facts[0], facts[2]]
    grads = [torch.randn_like(each) for each in tensors]
    grads[2] = torch.randn(6).to_sparse()  # of a flat parameter, and no flat tensor
    for each, grad in zip(facts, grads, strict=True):
        each.parameter.grad = grad
    parameters.weights()
    parameters.gradients(0.5, True)
    with torch.no_grad():
        for each in facts:
            each.parameter.mul_(0.5)
    parameters.updates()
    weights = sum(each.double().square().sum().item() for each in tensors)
    assert parameters.weight_square == pytest.approx(weights)
    assert parameters.update_square == pytest.approx(weights / 4)
    assert math.isnan(parameters.grad_square)  # a sparse one has no such number
    facts[2].parameter.grad = grads[2] = torch.randn(12)[::2]
    parameters.gradients(0.5, True)
    squares = sum(each.double().square().sum().item() for each in grads)
    assert parameters.grad_square == pytest.approx(squares / 4)


def test_no_sum_of_updates_without_all_of_them():
    of = journal()
    of.options.snapshot_cap = 64
    facts = facts_of(torch.ones(8), torch.ones(8), torch.ones(8))
    parameters = ParameterSet(of, of, facts)
    assert (parameters.turns, parameters.memory) == (3, 64)
    parameters.weights()
    parameters.updates()
    assert math.isnan(parameters.update_square)


def test_updates_are_told_only_where_weights_were_read_and_only_once():
    of, [facts], parameters = made(torch.ones(3))
    parameters.updates()
    parameters.weights()
    parameters.updates()
    parameters.updates()
    parameters.settle()
    assert facts.moved == [0, 1]
    assert field(of, "p0", "updates", "count") == 3


def test_a_probe_finds_what_is_not_finite_and_tells_of_all():
    of, facts, parameters = made(torch.ones(2), torch.ones(3), torch.ones(2).expand(2, 2).t())
    for each in facts[:2]:
        each.parameter.grad = torch.ones_like(each.parameter)
    assert not parameters.seems_odd(0)
    parameters.flag_odd()
    assert of.flags == []
    for each in facts[:2]:
        each.parameter.grad[1] = float("inf")
    assert parameters.seems_odd(0)
    parameters.flag_odd()
    assert of.flags == [("p0", "param_grads"), ("p1", "param_grads")]


def test_second_moments_are_read_of_parameters_that_have_one():
    of, facts, parameters = made(torch.ones(3), torch.ones(4, 2).t(), torch.ones(2))
    optimizer = torch.optim.Adam([each.parameter for each in facts])
    for each, number in zip(facts[:2], (2.0, 3.0), strict=True):
        optimizer.state[each.parameter]["exp_avg_sq"] = torch.full_like(each.parameter, number)
    parameters.second_moments(optimizer)
    assert [field(of, f"p{at}", "second_moment", "mean") for at in (0, 1)] == [2.0, 3.0]
    assert field(of, "p2", "second_moment", "count") == 0
