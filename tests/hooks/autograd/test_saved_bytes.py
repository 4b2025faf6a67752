"""What a forward keeps for its backward, counted once."""

import torch
from torch import nn

from nethook.hooks.autograd.saved_bytes import saved_bytes


def test_results_that_are_kept_count_once():
    x = torch.randn(10, 4, requires_grad=True)
    with saved_bytes() as saved:
        y = x.tanh()  # keeps its result
        (y * y).sum()  # keeps the same twice
    assert saved.total == 10 * 4 * 4


def test_what_is_there_anyway_does_not_count():
    layer = nn.Linear(4, 3).requires_grad_(False)
    x = torch.randn(10, 4, requires_grad=True)
    with saved_bytes(layer.parameters()) as saved:
        layer(x)
    assert saved.total == 0
    with saved_bytes() as saved:
        layer(x)
    assert saved.total == 4 * 3 * 4  # a view of the weight is the whole of it


def test_gradients_are_the_same():
    x = torch.randn(5, requires_grad=True)
    with saved_bytes():
        y = x.exp().sum()
    y.backward()
    assert torch.equal(x.grad, x.detach().exp())
