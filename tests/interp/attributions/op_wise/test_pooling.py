"""The largest of a window: exact shares, against fine quadrature."""

import pytest
import torch
from torch.nn import functional as F

from nethook.interp.attributions.op_wise.pooling import pool_gradient, shares

GENERATOR = torch.Generator().manual_seed(0)


def test_shares_of_crossing_lines():
    first = torch.tensor([0.0, 1.0, 0.4])[:, None]
    last = torch.tensor([2.0, 1.0, 0.4])[:, None]  # the first overtakes the second half-way
    assert shares(first, last).flatten().tolist() == [0.5, 0.5, 0.0]
    same = torch.ones(3, 1)
    assert shares(same, same).flatten().tolist() == [1.0, 0.0, 0.0]  # one of them counts, once


@pytest.mark.parametrize(
    ("function", "shape", "options"),
    [
        (F.max_pool2d, (2, 3, 7, 8), {"kernel_size": 2}),
        (F.max_pool2d, (2, 3, 7, 8), {"kernel_size": 3, "stride": 2, "padding": 1}),
        (F.max_pool2d, (1, 2, 9, 9), {"kernel_size": (2, 3), "stride": (1, 2), "dilation": 2}),
        (F.max_pool1d, (2, 3, 9), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ],
)
def test_the_integral_of_the_gradient(function, shape, options):
    given, base = torch.randn(2, *shape, generator=GENERATOR).double()
    grad = torch.randn(function(given, **options).shape, generator=GENERATOR).double()
    found = pool_gradient(given, base, grad, **options)
    change = ((function(given, **options) - function(base, **options)) * grad).sum()
    assert abs(float((found * (given - base)).sum() - change)) < 1e-12
    total = torch.zeros_like(given)
    for step in range(400):
        place = (base + (step + 0.5) / 400 * (given - base)).requires_grad_()
        total += torch.autograd.grad(function(place, **options), place, grad)[0] / 400
    assert float((found - total).abs().max()) < 0.02


def test_other_forms_are_left_to_nodes():
    x = torch.randn(1, 1, 5, 5)
    assert pool_gradient(x, x, torch.ones(1, 1, 3, 3), 2, ceil_mode=True) is None
    assert pool_gradient(x[0], x[0], torch.ones(1, 1, 1), 5, return_indices=True) is None
