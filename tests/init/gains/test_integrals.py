"""Gains against closed forms, against the published table, and against brute force."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from nethook.errors import ActivationError, OptionError
from nethook.init import gain, moments

# activation, E f, E f², forward, variance, backward, chi, slope
TABLE = """
relu 0.398942 0.500000 1.414214 1.712859 1.414214 1.0000 1.0000
leaky_relu(0.2) 0.319154 0.520000 1.386750 1.546460 1.386750 1.0000 1.0000
gelu 0.282095 0.425221 1.533530 1.700926 1.481114 1.0720 1.1441
gelu_tanh 0.282039 0.425194 1.533581 1.700917 1.481168 1.0720 1.1443
silu 0.206621 0.355776 1.676532 1.787187 1.623320 1.0666 1.1726
mish 0.240404 0.452342 1.486848 1.592025 1.444755 1.0591 1.0763
elu 0.160521 0.644945 1.245198 1.270843 1.223429 1.0359 0.8910
selu 0.000000 1.000000 1.000000 1.000000 0.966026 1.0716 0.7826
softplus 0.806059 0.921246 1.041867 1.919126 1.846229 0.3185 0.4921
tanh 0.000000 0.394294 1.592537 1.592537 1.467414 1.1778 0.4611
sigmoid 0.500000 0.293379 1.846229 4.801313 4.722646 0.1528 0.1063
hardswish 0.166217 0.331567 1.736657 1.813871 1.670076 1.0813 1.2239
hardtanh 0.000000 0.516059 1.392036 1.392036 1.210287 1.3229 0.3851
softsign 0.000000 0.183014 2.337533 2.337533 2.095781 1.2440 0.4767
quick_gelu 0.282331 0.421953 1.539459 1.709359 1.491459 1.0654 1.1365
relu_squared 0.500000 1.500000 0.816497 0.894427 0.707107 1.3333 2.0000
"""
ROWS = [line.split() for line in TABLE.split("\n") if line]
NORMAL = NormalDist()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_published_table(row):
    found = moments(row[0])
    numbers = [
        found.mean, found.second, found.gain("forward"), found.gain("variance"),
        found.gain("backward"),
    ]  # fmt: skip
    assert numbers == pytest.approx([float(text) for text in row[1:6]], abs=5.1e-7)
    assert [found.chi, found.slope] == pytest.approx([float(text) for text in row[6:]], abs=5.1e-5)
    assert found.stable == (float(row[7]) <= 1)


CLOSED = [
    # f, E f², E f'²
    ("relu", 1 / 2, 1 / 2),
    ("leaky_relu(0.2)", (1 + 0.04) / 2, (1 + 0.04) / 2),
    (nn.LeakyReLU(0.37), (1 + 0.37**2) / 2, (1 + 0.37**2) / 2),
    (nn.PReLU(), (1 + 1 / 16) / 2, (1 + 1 / 16) / 2),
    ("gelu", 1 / 3 + 1 / (2 * math.sqrt(3) * math.pi), None),
    ("hardtanh", None, math.erf(1 / math.sqrt(2))),
    ("relu_squared", 3 / 2, 2.0),
    ("identity", 1.0, 1.0),
    (torch.square, 3.0, 4.0),
    (torch.exp, math.exp(2), math.exp(2)),
    (torch.sin, (1 - math.exp(-2)) / 2, (1 + math.exp(-2)) / 2),
    ("erf", 2 / math.pi * math.asin(2 / 3), 4 / math.pi / math.sqrt(5)),
    (torch.abs, 1.0, 1.0),
    (torch.sign, 1.0, 0.0),
]


@pytest.mark.parametrize(("f", "second", "derivative"), CLOSED)
def test_closed_forms_to_ten_digits(f, second, derivative):
    found = moments(f)
    if second is not None:
        assert found.second == pytest.approx(second, rel=1e-12, abs=1e-12)
    if derivative is not None:
        assert found.derivative == pytest.approx(derivative, rel=1e-12, abs=1e-12)


def test_selu_keeps_mean_zero_and_variance_one():
    found = moments("selu")
    assert found.mean == pytest.approx(0, abs=1e-10)
    assert found.second == pytest.approx(1, abs=1e-10)


def test_the_derivative_of_softplus_is_sigmoid():
    assert moments("softplus").derivative == pytest.approx(moments("sigmoid").second, abs=1e-12)
    # softplus by its true formula has no threshold; torch's has one, out of reach here
    true = moments(lambda x: torch.log1p(torch.exp(x)))
    assert true.second == pytest.approx(moments("softplus").second, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(kink=st.floats(-5, 5), slope=st.floats(-3, 3))
def test_a_kink_is_found_wherever_it_is(kink, slope):
    def f(x):
        return torch.where(x > kink, x - kink, slope * (x - kink))

    # E (x − k)² over one side of the kink, by parts
    above = (1 + kink**2) * (1 - NORMAL.cdf(kink)) - kink * NORMAL.pdf(kink)
    below = (1 + kink**2) - above
    found = moments(f)
    assert found.second == pytest.approx(above + slope**2 * below, rel=1e-10)
    share = 1 - NORMAL.cdf(kink)
    assert found.derivative == pytest.approx(share + slope**2 * (1 - share), rel=1e-10, abs=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    jump=st.floats(-4, 4)
    | st.builds(lambda whole, bit: whole + bit, st.integers(-4, 4), st.floats(-0.01, 0.01))
)
def test_a_jump_is_found_wherever_it_is(jump):
    found = moments(lambda x: (x > jump).double())
    assert found.second == pytest.approx(1 - NORMAL.cdf(jump), abs=1e-10)
    assert math.isnan(found.derivative)  # autograd knows none


@pytest.mark.parametrize("q", [0.01, 0.3, 1.0, 7.0, 100.0])
def test_positively_homogeneous_functions_have_one_gain_for_every_scale(q):
    for kind in ("forward", "backward"):
        assert gain("relu", kind, q) == pytest.approx(math.sqrt(2), rel=1e-10)
    assert moments("relu", q).slope == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize("f", ["tanh", "gelu", "hardtanh", "silu"])
@pytest.mark.parametrize("q", [0.25, 4.0])
def test_other_scales_against_a_plain_sum(f, q):
    points = np.linspace(-12, 12, 2_000_001)
    weight = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi) * (points[1] - points[0])
    function = getattr(F, f)
    value = function(torch.from_numpy(points * math.sqrt(q))).numpy()
    second = float((value**2 * weight).sum())
    assert moments(f, q).second == pytest.approx(second, rel=1e-8)
    assert gain(f, q=q) == pytest.approx(math.sqrt(q / second), rel=1e-8)


@pytest.mark.parametrize("f", ["tanh", "silu", "selu", "softshrink"])
def test_the_slope_is_that_of_the_map_of_scales(f):
    step = 1e-4
    up, down = (moments(f, 1 + sign * step).second for sign in (1, -1))
    expected = (up - down) / (2 * step) / moments(f).second
    assert moments(f).slope == pytest.approx(expected, rel=1e-6)


def test_monte_carlo_agrees_within_its_noise():
    torch.manual_seed(0)
    x = torch.randn(200_000, dtype=torch.float64)
    for name in ("mish", "hardsigmoid", "logsigmoid", "tanhshrink", "celu(0.7)"):
        cls = {"logsigmoid": nn.LogSigmoid()}.get(name) or name
        found = moments(cls)
        function = {
            "mish": F.mish, "hardsigmoid": F.hardsigmoid, "logsigmoid": F.logsigmoid,
            "tanhshrink": F.tanhshrink, "celu(0.7)": lambda x: F.celu(x, 0.7),
        }[name]  # fmt: skip
        assert float(function(x).square().mean()) == pytest.approx(found.second, rel=0.02)


def test_it_works_under_inference_mode_and_without_gradient():
    with torch.inference_mode():
        assert gain("tanh", "backward") == pytest.approx(1.467414, abs=1e-6)
    with torch.no_grad():
        assert gain(nn.Tanh(), "backward") == pytest.approx(1.467414, abs=1e-6)


def test_a_constant_has_no_gain_of_some_kinds():
    with pytest.raises(ActivationError, match="zero for every input"):
        gain(torch.zeros_like)
    with pytest.raises(ActivationError, match="constant"):
        gain(lambda x: torch.full_like(x, 3.0), "variance")
    with pytest.raises(ActivationError, match="derivative is zero"):
        gain(torch.sign, "backward")
    with pytest.raises(ActivationError, match="no backward gain"):
        gain(lambda x: x.abs().sqrt(), "backward")  # 1/x has no finite mean
    assert gain(lambda x: x.abs().sqrt()) == pytest.approx(1 / math.sqrt(math.sqrt(2 / math.pi)))


@pytest.mark.parametrize("q", [0, -1, math.inf, math.nan, "1"])
def test_a_scale_is_a_number_above_zero(q):
    with pytest.raises(OptionError, match="`q` must be a number above 0, the mean square"):
        moments("relu", q)


def test_a_kind_is_one_of_three():
    # What torch takes as the second argument of calculate_gain.
    with pytest.raises(
        OptionError, match=r"got 0\.2\. A slope .*gain\(nn\.LeakyReLU\(0\.2\)\), or"
    ):
        gain("leaky_relu", 0.2)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="'forward', 'backward', 'variance'; got 'sideways'"):
        gain("relu", "sideways")


def test_plain_data():
    data = moments("gelu").to_dict()
    assert data["name"] == "gelu"
    assert data["variance"] == pytest.approx(data["second"] - data["mean"] ** 2)
    assert data["stable"] is False
