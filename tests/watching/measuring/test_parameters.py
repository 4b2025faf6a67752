"""Weights, gradients and updates of some parameters, against torch in float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.parameters import ParametersChangedError, ParameterSet, _Snapshot
from tests.watching.fakes import field, journal


def made(*tensors: torch.Tensor, **more):
    of = journal(**more)
    facts = [ParameterFacts(f"p{at}", nn.Parameter(each)) for at, each in enumerate(tensors)]
    return of, facts, ParameterSet(of, of, facts)


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


def test_copies_of_weights_take_turns_under_a_cap():
    snapshot = _Snapshot([64, 64, 100, 1000], cap=200)
    assert snapshot.turns == 2
    turns = []
    for _ in range(4):
        snapshot.turn()
        turns.append((snapshot.current > 0).tolist())
    assert turns == [
        [True, True, False, False],
        [False, False, True, False],
        [True, True, False, False],
        [False, False, True, False],
    ]  # the last is larger than the cap
    assert snapshot.memory <= 200
    assert (snapshot.current % 64 == 0).all()
