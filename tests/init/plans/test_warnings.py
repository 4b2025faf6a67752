"""Warnings: copies, layers that never ran, scales that run away."""

from __future__ import annotations

import torch
from torch import nn

from nethook.init import apply_, plan, verify
from tests.init.networks import mlp, transformer


def told(model, x, **options):
    return plan(model, x, **options).warnings


def test_cloned_layers():
    (warning,) = told(transformer(2), torch.randn(2, 4, 32))
    assert "layers.0.linear1.weight = layers.1.linear1.weight" in warning
    # Zeros and ones are alike and no copies.
    model = mlp(3, nn.ReLU, 8)
    for layer in (model[0], model[2]):
        nn.init.zeros_(layer.weight)
    assert told(model, torch.randn(4, 8)) == ()


def test_layers_that_were_never_called():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(4, 4)
            self.head = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

        def forward(self, x):
            return self.used(x)

    assert told(Idle(), torch.randn(2, 4)) == ("never called in this forward: 'head'.",)


def test_unstable_slopes_of_deep_plain_networks():
    x = torch.randn(8, 64)
    for method in ("he", "orthogonal"):
        (warning,) = told(mlp(15, nn.SiLU), x, method=method)
        assert "silu repels its own scale (slope 1.173 > 1), and 14 layers" in warning
        assert "calibrate_" in warning
    assert told(mlp(15, nn.SiLU), x) == ()  # in pairs it is straight
    assert told(mlp(5, nn.SiLU), x, method="he") == ()
    assert told(mlp(15, nn.Tanh), x, method="he") == ()
    assert told(mlp(15, nn.ReLU), x, method="he") == ()
    normed = nn.Sequential(
        *[m for _ in range(15) for m in (nn.Linear(8, 8), nn.LayerNorm(8), nn.SiLU())]
    )
    assert told(normed, torch.randn(4, 8), method="he") == ()


def test_a_report_warns_as_well():
    model = transformer(2)
    x = torch.randn(2, 4, 32)
    assert "1 WARNING" in repr(verify(model, x))
    apply_(model, plan(model, x), 0)
    assert "WARNING" not in repr(verify(model, x))
