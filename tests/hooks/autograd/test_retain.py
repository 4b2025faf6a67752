"""Letting a tensor inside a graph keep its gradient."""

import torch
from torch.overrides import TorchFunctionMode

from nethook.hooks.autograd.retain import keep_gradient


def test_a_tensor_inside_a_graph_keeps_its_gradient():
    inner = torch.ones(2, requires_grad=True) * 2
    keep_gradient(inner)
    (inner * 3).sum().backward()
    assert inner.grad.tolist() == [3, 3]


def test_a_mode_of_the_users_does_not_notice():
    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    inner = torch.ones(2, requires_grad=True) * 2
    with Functions():
        keep_gradient(inner)
    assert seen == []


def test_a_view_whose_alias_was_written_in_place_does_not_end_the_process():
    base = torch.zeros(4, requires_grad=True) * 1
    view = base[:2]
    base.mul_(3)
    keep_gradient(view)
    (view * 5).sum().backward()
    assert view.grad.tolist() == [5, 5]
