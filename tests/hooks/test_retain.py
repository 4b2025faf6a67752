"""Letting a tensor inside a graph keep its gradient."""

import torch

from nethook.hooks.retain import keep_gradient


def test_a_tensor_inside_a_graph_keeps_its_gradient():
    inner = torch.ones(2, requires_grad=True) * 2
    keep_gradient(inner)
    (inner * 3).sum().backward()
    assert inner.grad.tolist() == [3, 3]
