"""The leaves of a graph are the tensors that a backward pass gives a gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nethook.hooks.autograd.leaves import leaves_of


def ids(tensors) -> set[int]:
    return {id(tensor) for tensor in tensors}


def models():
    yield nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
    yield nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    yield nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    frozen = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 2))
    frozen[0].requires_grad_(False)
    yield frozen


@pytest.mark.parametrize("model", list(models()), ids=lambda model: type(model).__name__)
def test_exactly_what_gets_a_gradient(model):
    loss = model(torch.randn(6, 4)).square().mean()
    leaves = leaves_of([loss])
    loss.backward()
    expected = ids(tensor for tensor in model.parameters() if tensor.grad is not None)
    assert ids(leaves.tensors) == expected
    assert leaves.whole
    assert not leaves.second_order


def test_inputs_tied_weights_and_several_roots():
    x, tied = torch.randn(3, 4, requires_grad=True), nn.Linear(4, 4)
    roots = [tied(tied(x)).sum(), (2 * x).sum()]
    assert ids(leaves_of(roots).tensors) == ids([x, tied.weight, tied.bias])


def test_a_root_that_is_a_leaf():
    loss = torch.tensor(1.0, requires_grad=True)
    assert leaves_of([loss]).tensors == (loss,)
    assert leaves_of([torch.tensor(1.0)]).tensors == ()


def test_a_function_of_the_users_own():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.variable = "mine"
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    x = torch.randn(3, requires_grad=True)
    assert ids(leaves_of([Double.apply(x).sum()]).tensors) == ids([x])


def test_gradients_of_gradients():
    x, model = torch.randn(3, 2, requires_grad=True), nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    (force,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    assert leaves_of([force.square().sum()]).second_order


def test_checkpoints():
    layer, x = nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True)
    inside = leaves_of([checkpoint(layer, x, use_reentrant=False).sum()])
    assert ids(inside.tensors) == ids([x, layer.weight, layer.bias])
    # Of a reentrant one the graph is made during the pass.
    assert ids(leaves_of([checkpoint(layer, x, use_reentrant=True).sum()]).tensors) == ids([x])


def test_a_graph_that_is_too_large_is_not_whole():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(50):
        y = y + 1
    assert not leaves_of([y], most=10).whole
    assert leaves_of([y]).whole


def test_nothing_is_computed_or_kept():
    model = nn.Linear(4, 2)
    loss = F.mse_loss(model(torch.ones(3, 4)), torch.zeros(3, 2))
    leaves_of([loss])
    assert model.weight.grad is None
    loss.backward()
    expected = torch.autograd.grad(
        F.mse_loss(model(torch.ones(3, 4)), torch.zeros(3, 2)), model.weight
    )[0]
    assert torch.equal(model.weight.grad, expected)
