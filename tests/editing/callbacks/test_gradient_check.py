"""Gradients against finite differences, and what is said of those that are missing or wrong."""

import pytest
import torch
from torch import nn

from nethook.editing.callbacks.gradient_check import (
    GradientCheck,
    GradientReport,
    check_gradients,
)
from nethook.errors import EditError


class Wrong(torch.autograd.Function):
    """A square whose gradient lacks the factor 2."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


def parameters(**values):
    module = nn.Module()
    for name, value in values.items():
        setattr(module, name, nn.Parameter(torch.tensor(value, dtype=torch.float64)))
    return module


def test_a_right_gradient_is_told_with_its_norm():
    model = parameters(a=[1.0, -2.0])
    report = check_gradients(model, lambda: (model.a**3).sum(), samples=2, tolerance=1e-5)
    assert report.ok
    assert report["a"].state == "ok"
    assert report["a"].norm == pytest.approx((3**2 + 12**2) ** 0.5)
    assert report["a"].error < 1e-8


def test_a_wrong_gradient_is_off_by_what_it_lacks():
    model = parameters(a=[3.0])
    report = check_gradients(model, lambda: Wrong.apply(model.a).sum(), 1, 1e-5)
    assert not report.ok
    assert report["a"].state == "wrong"
    assert report["a"].error == pytest.approx(0.5, abs=1e-6)  # 3 where the slope is 6


def test_the_largest_elements_are_compared():
    model = parameters(a=[0.0, 5.0], b=[1.0])

    def loss():  # wrong only where the gradient is small
        return model.a[1] * 100 + Wrong.apply(model.a[0] + 1) + model.b.sum()

    assert check_gradients(model, loss, 1, 1e-5)["a"].state == "ok"
    assert check_gradients(model, loss, 2, 1e-5)["a"].error == pytest.approx(0.01, abs=1e-6)
    assert check_gradients(model, loss, 0, 1e-5)["a"].error is None


def test_gradients_that_are_not_there():
    model = parameters(none=[1.0], zero=[1.0], infinite=[0.0], frozen=[1.0])
    model.frozen.requires_grad_(False)
    report = check_gradients(
        model, lambda: (model.zero * 0).sum() + model.infinite.sqrt().sum(), 1, 1e-5
    )
    states = {check.address: check.state for check in report.checks}
    assert states == {"none": "none", "zero": "zero", "infinite": "not finite", "frozen": "frozen"}


def test_everything_is_left_as_it_was():
    model = parameters(a=[1.0, 2.0])
    model.a.grad = torch.tensor([7.0, 7.0], dtype=torch.float64)
    grad, before, state = model.a.grad, model.a.detach().clone(), torch.get_rng_state()
    check_gradients(model, lambda: (model.a * torch.rand(2)).sum(), 2, 1e-5)
    assert model.a.grad is grad
    assert grad.tolist() == [7, 7]
    assert torch.equal(model.a, before)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("value", "got"), [(1.0, "float"), (torch.ones(2), r"a tensor of shape \(2,\)")]
)
def test_the_loss_returns_one_number(value, got):
    with pytest.raises(EditError, match=rf"`loss` must be .* as a tensor; got {got}\. Return"):
        check_gradients(parameters(a=[1.0]), lambda: value, 1, 0.1)


def test_the_report_is_a_table():
    report = GradientReport(
        (GradientCheck("a", "ok", 1.0, 0.0), GradientCheck("b", "none", None, None))
    )
    lines = repr(report).splitlines()
    assert lines[0] == "gradients of 2 parameters: look"
    assert [line.split()[:2] for line in lines if line.startswith(("a", "b"))] == [
        ["a", "ok"],
        ["b", "none"],
    ]
    assert "<table" in report._repr_html_()
    with pytest.raises(KeyError):
        report["c"]
