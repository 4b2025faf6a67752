"""Which function is meant, and whether it acts on each element."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.errors import ActivationError
from nethook.init import gain, moments
from nethook.init.gains.activations import names


@pytest.mark.parametrize("name", [name for name in names() if name != "threshold"])
def test_every_name_has_a_gain(name):
    found = moments(name)
    assert math.isfinite(found.gain())
    assert moments(name) == found  # no random numbers
    assert found.error < 1e-12


def test_names_of_all_activation_modules_of_torch():
    from torch.nn.modules import activation

    without = {"Softmax", "LogSoftmax", "Softmin", "Softmax2d", "GLU", "MultiheadAttention"}
    for cls in activation.__all__:
        if cls in without:
            with pytest.raises(ActivationError, match=r"has no gain|no activation"):
                gain(cls)
        elif cls == "Threshold":
            assert gain("Threshold(0, 0)") == pytest.approx(math.sqrt(2))
            with pytest.raises(ActivationError, match="threshold"):
                gain("Threshold")
        else:
            assert gain(cls) == gain(getattr(nn, cls)())


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("leaky_relu(0.2)", nn.LeakyReLU(0.2)),
        ("LeakyReLU(0.2)", nn.LeakyReLU(0.2, inplace=True)),
        ("elu(alpha=1.5)", nn.ELU(1.5)),
        ("softplus(2)", nn.Softplus(2.0)),
        ("prelu(0.1)", nn.PReLU(init=0.1)),
        ("hardtanh(-2, 2)", nn.Hardtanh(-2, 2)),
        ("celu(0.5)", nn.CELU(0.5)),
        ("swish", nn.SiLU()),
        ("gelu_tanh", nn.GELU("tanh")),
    ],
)
def test_parametrised_activations_by_name_and_by_module(name, module):
    by_module = moments(module)
    assert moments(name).second == pytest.approx(by_module.second, rel=1e-7)
    assert moments(by_module.name).second == pytest.approx(by_module.second, rel=1e-6)


def test_a_prelu_with_a_slope_a_channel_is_their_mean():
    module = nn.PReLU(3)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([0.0, 0.5, 1.0]))
    expected = sum((1 + slope**2) / 2 for slope in (0.0, 0.5, 1.0)) / 3
    assert moments(module).second == pytest.approx(expected, rel=1e-12)


def test_a_random_slope_counts_as_its_mean():
    assert gain(nn.RReLU().train()) == gain(nn.LeakyReLU((1 / 8 + 1 / 3) / 2))


def test_a_module_is_not_touched():
    module = nn.PReLU().train()
    state = torch.get_rng_state()
    moments(module)
    assert module.training
    assert module.weight.dtype == torch.float32
    assert module.weight.grad is None
    assert torch.equal(torch.get_rng_state(), state)


def test_functions_that_write_into_their_argument():
    assert gain(torch.relu_) == pytest.approx(math.sqrt(2))
    assert gain(nn.ReLU(inplace=True)) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        ("softmax", "mixes the elements"),
        ("swiglu", "one half of its input"),
        (nn.Softmax(dim=-1), "mixes the elements"),
        (nn.GLU(), "one half of its input"),
        (lambda x: torch.softmax(x, 0), "mixes the elements"),
        (lambda x: x / x.norm(), "mixes the elements"),
        (lambda x: x - x.mean(), "mixes the elements"),
        (lambda x: x[:3], r"turns \(64,\) into \(3,\)"),
        (lambda x: x.tolist(), "a list and not a tensor"),
        (lambda x: x > 0, "of type torch.bool"),
        (nn.Dropout(), "random numbers"),
        (F.dropout, "two calls with the same input differ"),
        (nn.LayerNorm(5), "cannot be called"),
        (torch.sqrt, "not finite"),
        (lambda x: torch.exp(x * x), "not finite"),
        ("gellu", "Closest: 'gelu'"),
        ("elu(a)", "must be numbers"),
        ("elu(1, 2, 3, 4)", "cannot be made"),
        ("not a name", "must be like 'gelu' or"),
        ("sin(2)", "takes no parameter"),
        (nn.ReLU, "got the class ReLU"),
        (3, "got 3"),
    ],
)
def test_what_has_no_gain_is_refused_with_the_reason(f, reason):
    with pytest.raises(ActivationError, match=reason):
        gain(f)
