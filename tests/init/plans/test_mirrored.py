"""Pairs of opposite sign: a deep plain network that starts as a linear one."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from nethook.init import apply_, plan
from tests.init.networks import ResNet, mlp, transformer


def start(model, x):
    found = plan(model, x)
    return apply_(model, found, 0), found


@pytest.mark.parametrize("activation", [nn.ReLU, nn.GELU, nn.SiLU, nn.LeakyReLU, nn.Hardswish])
def test_it_starts_as_a_linear_map(activation):
    torch.manual_seed(0)
    x = torch.randn(64, 64, dtype=torch.float64)
    model, found = start(mlp(20, activation).double(), x)
    y = torch.randn(64, 64, dtype=torch.float64)
    with torch.no_grad():
        assert torch.allclose(model(x + 3 * y), model(x) + 3 * model(y), atol=1e-9)
        # And one that keeps lengths, up to the last layer.
        inner = model[:-1]
        h = inner(x)
        pairs = h[:, :32] - h[:, 32:]
    assert found["0.weight"].mirror == (True, False)
    assert found["2.weight"].mirror == (True, True)
    assert found["38.weight"].mirror == (False, True)
    assert pairs.abs().sum() > 0


def test_gradients_keep_their_scale_over_a_hundred_layers():
    torch.manual_seed(0)
    x = torch.randn(32, 64)
    model, _ = start(mlp(100, nn.GELU), x)
    out = x.requires_grad_()
    kept = []
    for layer in model:
        out = layer(out)
        if isinstance(layer, nn.Linear):
            out.retain_grad()
            kept.append(out)
    out.backward(torch.randn_like(out))
    first, last = (float(each.grad.square().mean().sqrt()) for each in (kept[0], kept[-2]))
    assert first == pytest.approx(last, rel=0.05)


def test_convolutions_and_what_lies_between():
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()]
    for _ in range(6):
        layers += [nn.Conv2d(16, 16, 1), nn.ReLU(), nn.Dropout(0.1)]
    model = nn.Sequential(*layers, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 3)).double().eval()
    x, y = torch.randn(2, 4, 3, 4, 4, dtype=torch.float64)
    model, found = start(model, x)
    assert found[f"{len(model) - 1}.weight"].mirror == (False, True)
    with torch.no_grad():
        assert torch.allclose(model(x + y), model(x) + model(y), atol=1e-9)


@pytest.mark.parametrize(
    ("make", "x"),
    [
        (lambda: mlp(4, nn.ReLU), torch.randn(8, 64)),  # shallow
        (lambda: mlp(20, nn.Tanh), torch.randn(8, 64)),  # odd already
        (lambda: mlp(20, nn.SELU), torch.randn(8, 64)),  # nearly straight
        (lambda: mlp(20, nn.ReLU, 63), torch.randn(8, 63)),  # no pairs in an odd number
        (lambda: ResNet(8, norm=False), torch.randn(2, 3, 8, 8)),
        (lambda: transformer(8), torch.randn(2, 4, 32)),
        (
            lambda: nn.Sequential(
                *[m for _ in range(9) for m in (nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU())]
            ),
            torch.randn(4, 8),
        ),
    ],
    ids=["shallow", "odd", "straight", "width", "residual", "attention", "norm"],
)
def test_where_it_is_not_used(make, x):
    assert not any(any(row.mirror) for row in plan(make(), x))


def test_a_stretch_that_is_shared_is_not_mirrored():
    layer = nn.Linear(8, 8)
    model = nn.Sequential(*[m for _ in range(9) for m in (layer, nn.ReLU())])
    assert not any(any(row.mirror) for row in plan(model, torch.randn(4, 8)))


def test_only_auto_does_it():
    model, x = mlp(20, nn.ReLU), torch.randn(8, 64)
    for method in ("he", "orthogonal", "delta-orthogonal"):
        assert not any(any(row.mirror) for row in plan(model, x, method))
    assert plan(model, x)["2.weight"].std == pytest.approx(math.sqrt(2) / 8)
