"""`calculate_gain`: torch's values where torch has one, the exact ones on request."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from nethook.errors import ActivationError, OptionError
from nethook.init import calculate_gain, gain


@pytest.mark.parametrize("name", ["linear", "sigmoid", "tanh", "relu", "selu", "conv2d"])
def test_torchs_values_by_default(name):
    assert calculate_gain(name) == nn.init.calculate_gain(name)


@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0, -0.5])
def test_the_slope_by_any_spelling(slope):
    expected = nn.init.calculate_gain("leaky_relu", slope)
    assert calculate_gain("leaky_relu", slope) == pytest.approx(expected, rel=1e-6)
    assert calculate_gain("leaky_relu", negative_slope=slope) == pytest.approx(expected, rel=1e-6)
    assert calculate_gain("LeakyReLU", negative_slope=slope) == pytest.approx(expected, rel=1e-6)
    assert calculate_gain("leaky_relu", slope, convention="exact") == pytest.approx(expected)


def test_the_notes_list():
    assert calculate_gain("identity") == 1
    assert calculate_gain("tanh") == 5 / 3
    assert calculate_gain("selu") == 3 / 4
    assert calculate_gain("selu", convention="exact") == pytest.approx(1, abs=1e-10)
    assert calculate_gain("tanh", convention="exact") == pytest.approx(1.592537, abs=1e-6)
    assert calculate_gain("leaky_relu", negative_slope=0.2) == pytest.approx(math.sqrt(2 / 1.04))
    assert calculate_gain("leaky_relu") == pytest.approx(nn.init.calculate_gain("leaky_relu"))


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "elu", "softplus"])
def test_what_torch_does_not_know_is_exact(name):
    assert calculate_gain(name) == gain(name)


def test_functions_and_modules():
    assert calculate_gain(nn.Tanh()) == 5 / 3
    assert calculate_gain(nn.LeakyReLU(0.2)) == pytest.approx(math.sqrt(2 / 1.04))
    assert calculate_gain(lambda x: x.relu()) == pytest.approx(math.sqrt(2))
    assert calculate_gain(torch.tanh) == 5 / 3
    assert calculate_gain("elu", 1.5) == gain(nn.ELU(1.5))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: calculate_gain("leaky_relu", 0.1, negative_slope=0.2),
            "`param` must be left out beside `negative_slope`; got 0.1 and 0.2",
        ),
        (
            lambda: calculate_gain("tanh", negative_slope=0.2),
            "`negative_slope` must come with 'leaky_relu'; got 'tanh'",
        ),
        (lambda: calculate_gain(nn.ReLU(), 0.2), "has its own"),
        (lambda: calculate_gain("relu", convention="he"), "got 'he'"),
    ],
)
def test_options_that_make_no_sense(call, text):
    with pytest.raises(OptionError, match=text):
        call()


def test_a_parameter_for_an_activation_without_one():
    with pytest.raises(ActivationError, match=r"'tanh\(0.2\)' cannot be made"):
        calculate_gain("tanh", 0.2)
