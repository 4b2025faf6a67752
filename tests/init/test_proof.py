"""The proof: deep networks of all kinds keep their scale after plan, apply_ and calibrate_."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.init import apply_, calibrate_, plan, verify
from tests.init.networks import Reader, ResNet, mlp, rms, transformer


def start(model, x):
    found = plan(model, x)
    apply_(model, found, 0)
    return calibrate_(model, x, plan=found)


@pytest.mark.parametrize(
    "activation", [nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.SELU, nn.Mish], ids=lambda a: a.__name__
)
def test_fifty_plain_layers(activation):
    torch.manual_seed(0)
    model = mlp(50, activation, 128)
    x, fresh = torch.randn(2, 256, 128)
    assert start(model, x).forwards == 1
    assert verify(model, x).ok(1 - 1e-3, 1 + 1e-3)
    assert verify(model, fresh).ok(0.8, 1.3)
    # Measured once more, without nethook.
    for value, low, high in ((x, 0.999, 1.001), (fresh, 0.8, 1.3)):
        with torch.no_grad():
            for layer in model:
                value = layer(value)
                if isinstance(layer, nn.Linear):
                    assert low <= rms(value) <= high


@pytest.mark.parametrize("activation", [nn.GELU, nn.Tanh])
def test_fifty_plain_layers_from_where_torch_starts(activation):
    """Without a plan: calibration alone."""
    torch.manual_seed(0)
    model = mlp(50, activation, 128)
    x, fresh = torch.randn(2, 512, 128)
    assert calibrate_(model, x).forwards == 1
    assert verify(model, x).ok(1 - 1e-3, 1 + 1e-3)
    assert verify(model, fresh).ok(0.7, 1.4)


def test_a_deep_residual_network_without_norms():
    torch.manual_seed(0)
    model = ResNet(20, norm=False)
    x, fresh = torch.randn(2, 8, 3, 8, 8)
    start(model, x)
    report = verify(model, x)
    assert report.ok(1 - 1e-3, 1 + 1e-3)
    assert verify(model, fresh).ok(0.7, 1.4)
    # The gradient neither vanishes nor explodes over eighty convolutions.
    inner = [row.backward for row in report if row.ends_branch]
    assert max(inner) / min(inner) < 5


def test_a_pre_norm_transformer():
    torch.manual_seed(0)
    model = transformer(6).eval()
    x, fresh = torch.randn(2, 8, 10, 32)
    start(model, x)
    assert verify(model, x).ok(1 - 1e-3, 1 + 1e-3)
    assert verify(model, fresh).ok(0.8, 1.3)
    inner = [row.backward for row in verify(model, x) if row.ends_branch]
    assert max(inner) / min(inner) < 4


def test_an_lstm():
    torch.manual_seed(0)
    model = Reader()
    tokens = torch.randint(1, 50, (16, 40))
    start(model, tokens)
    report = verify(model, tokens)
    assert report.ok(0.95, 1.05)  # the embedding is drawn, not calibrated
    assert report["head"].forward == pytest.approx(1.0, abs=1e-3)
    assert report["lstm"].forward > 0.05
    # The gate that starts open carries a gradient over forty steps.
    states = torch.randn(4, 40, 24, requires_grad=True)
    model.lstm(states)[0][:, -1].square().sum().backward()
    first, last = (rms(states.grad[:, at]) for at in (0, -1))
    assert first / last > 1e-5
