"""Kinds of operations: what each set claims holds for torch's own functions."""

import pytest
import torch
from torch.nn import functional as F

from nethook.kinds import operations
from nethook.kinds.operations import ELEMENTWISE, LINEAR, LINEAR_LAYERS, RANDOM, WEIGHTED

torch.manual_seed(0)
X, Y = torch.randn(2, 4, 6, 6, dtype=torch.float64), torch.randn(2, 4, 6, 6, dtype=torch.float64)


def applied(name: str):
    """An operation of one image, with whatever else it needs; None where it needs too much."""
    given = {
        "linear": lambda x: F.linear(x, torch.eye(6, dtype=x.dtype)[:3]),
        "conv2d": lambda x: F.conv2d(x, torch.ones(2, 4, 3, 3, dtype=x.dtype)),
        "conv_transpose2d": lambda x: F.conv_transpose2d(x, torch.ones(4, 2, 3, 3, dtype=x.dtype)),
        "matmul": lambda x: x @ torch.ones(6, 2, dtype=x.dtype),
        "add": lambda x: x + x,
        "sub": lambda x: x - 3 * x,
        "cat": lambda x: torch.cat([x, 2 * x]),
        "stack": lambda x: torch.stack([x, 2 * x]),
        "getitem": lambda x: x[1],
        "reshape": lambda x: x.reshape(-1),
        "permute": lambda x: x.permute(1, 0, 3, 2),
        "pad": lambda x: F.pad(x, (1, 1)),
        "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
        "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
        "interpolate": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        "cumsum": lambda x: x.cumsum(0),
        "unfold": lambda x: F.unfold(x, 2),
        "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    }
    if name in given:
        return given[name]
    function = getattr(torch, name, None)
    return function if name in {"neg", "mean", "sum", "flatten", "squeeze", "clone"} else None


@pytest.mark.parametrize("name", [name for name in sorted(LINEAR) if applied(name)])
def test_what_is_linear_is_linear(name):
    function = applied(name)
    torch.testing.assert_close(function(2 * X - 3 * Y), 2 * function(X) - 3 * function(Y))


@pytest.mark.parametrize("name", ["relu", "gelu", "sigmoid", "tanh", "abs", "square", "softplus"])
def test_what_is_bent_is_not_listed_as_linear(name):
    function = getattr(torch, name, None) or getattr(F, name)
    assert not torch.allclose(function(2 * X - 3 * Y), 2 * function(X) - 3 * function(Y))
    assert name not in LINEAR
    assert name in ELEMENTWISE


@pytest.mark.parametrize("name", sorted(RANDOM & {"rand_like", "randn_like", "bernoulli"}))
def test_what_is_random_differs_from_call_to_call(name):
    given = torch.full((1000,), 0.5)
    assert not torch.equal(getattr(torch, name)(given), getattr(torch, name)(given))


def test_the_sets_agree_where_they_overlap():
    assert LINEAR_LAYERS - {"bilinear"} <= LINEAR & WEIGHTED
    assert operations.ALIGNED <= operations.PASS
    assert operations.LINEAR_IN_ONE <= LINEAR
    assert not ELEMENTWISE & RANDOM
    assert not LINEAR & operations.NORMS
