"""Saliency and input × gradient: captum, and finite differences."""

import pytest
import torch
from captum.attr import InputXGradient, Saliency
from torch import nn

from nethook import interp

pytestmark = pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require grad")
MODEL = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ELU(), nn.Flatten(), nn.Linear(64, 3)).double()
X = torch.randn(3, 2, 6, 6, generator=torch.Generator().manual_seed(0)).double()


def test_the_same_as_captum():
    classes = torch.tensor([0, 2, 1])
    found = interp.saliency(MODEL, X, target=classes)
    assert torch.equal(found.values, Saliency(MODEL).attribute(X, classes, abs=False).detach())
    times = interp.input_x_gradient(MODEL, X, target=classes)
    assert torch.equal(times.values, InputXGradient(MODEL).attribute(X, classes).detach())
    assert found.delta is None
    assert found.kind == "pixels"
    expected = times.values.flatten(1).sum(1) - times.score
    assert torch.allclose(times.delta, expected)


def test_finite_differences():
    found = interp.saliency(MODEL, X, target=lambda out: out.log_softmax(1)[:, 1])
    step = torch.zeros_like(X)
    step[:, 1, 2, 3] = 1e-6
    with torch.no_grad():
        up, down = (MODEL(X + sign * step).log_softmax(1)[:, 1] for sign in (1, -1))
    assert torch.allclose(found.values[:, 1, 2, 3], (up - down) / 2e-6, atol=1e-8)


def test_a_network_of_relus_without_bias_is_complete():
    model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.ReLU(), nn.Linear(8, 1, bias=False))
    found = interp.input_x_gradient(model.double(), torch.randn(5, 4).double())
    assert float(found.delta.abs().max()) < 1e-12


def test_an_input_that_the_target_does_not_depend_on():
    class Constant(nn.Module):
        def forward(self, x, y):
            return y.sum(1)

    found = interp.saliency(Constant(), (torch.randn(2, 3), torch.ones(2, 3, requires_grad=True)))
    assert not found.values.any()
