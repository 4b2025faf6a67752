"""Values and gradients of the base run against plain autograd."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.errors import OptionError, UnfiredError
from nethook.interp.estimates.gradients import base_gradients, numbers, record
from nethook.interp.estimates.points import Point


@pytest.fixture
def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def first(out: torch.Tensor) -> torch.Tensor:
    return out[:, 0]


def test_gradients_are_those_of_autograd(model: nn.Sequential) -> None:
    x = torch.randn(5, 3)
    points = [Point("0"), Point("1")]
    there, metric = record(model, Inputs((x + 1,)), points, first)
    run = base_gradients(model, Inputs((x,)), points, first, there)
    hidden = model[0](x).detach().requires_grad_()
    active = torch.tanh(hidden)
    expected = torch.autograd.grad(model[2](active)[:, 0].sum(), [hidden, active])
    ((none, grads),) = run.grads
    assert none is None
    for point, grad in zip(points, expected, strict=True):
        assert torch.equal(grads[point], grad)
    assert torch.equal(run.values[points[0]], hidden.detach())
    assert torch.equal(run.metric, first(model(x)).detach())
    assert metric is not None
    assert torch.equal(metric, first(model(x + 1)).detach())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


def test_a_dropped_layer_lets_no_gradient_through(model: nn.Sequential) -> None:
    x, point = torch.randn(5, 3), Point("0")
    there, _ = record(model, Inputs((x,)), [point], None)
    run = base_gradients(model, Inputs((x,)), [point], first, there, drop=("1", "2"))
    assert [name for name, _ in run.grads] == ["1", "2"]
    assert all((grads[point] == 0).all() for _, grads in run.grads)
    before = base_gradients(model, Inputs((x,)), [Point("2")], first, {}, drop=("0",))
    assert (before.grads[0][1][Point("2")] != 0).any()  # it lies before the point


def test_a_dropped_layer_that_does_not_run_is_an_error(model: nn.Sequential) -> None:
    model.add_module("unused", nn.Linear(2, 2))
    model.forward = lambda x: model[2](model[1](model[0](x)))  # type: ignore[method-assign]
    with pytest.raises(UnfiredError):
        base_gradients(
            model, Inputs((torch.ones(1, 3),)), [Point("0")], first, {}, drop=("unused",)
        )


def test_a_metric_gives_one_number_per_row() -> None:
    out = torch.ones(3, 2)
    assert numbers(first, out).shape == (3,)
    for wrong in (lambda out: out, lambda out: out.sum(), lambda out: 1.0):
        with pytest.raises(OptionError, match="one number per row of the batch"):
            numbers(wrong, out)
    with pytest.raises(OptionError, match=r"got shape \(3,\)"):
        numbers(first, out, rows=2)
