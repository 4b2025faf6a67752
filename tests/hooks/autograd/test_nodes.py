"""Autograd nodes: held with their graph, numbered in the order in which they were made."""

import gc
import threading

import torch
from torch import nn

from nethook.hooks.autograd.nodes import HeldNode, inputs_of, leaf_of, made_since, number
from nethook.torch_private import next_node_number


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


def test_numbers_are_those_that_torch_gives_in_order() -> None:
    x = torch.ones(2, requires_grad=True)
    begin = next_node_number()
    first = x * 2
    middle = next_node_number()
    second = first + 1
    assert begin <= number(first.grad_fn) < middle <= number(second.grad_fn) < next_node_number()
    (leaf,) = inputs_of(first.grad_fn)
    assert number(leaf) is None
    assert leaf_of(leaf) is x
    assert leaf_of(first.grad_fn) is None


def test_every_thread_counts_for_itself() -> None:
    next_node_number()
    x = torch.ones(2, requires_grad=True)
    for _ in range(5):
        x * 2
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(next_node_number()))
    thread.start()
    thread.join()
    assert seen[0] < next_node_number()


def test_nodes_made_since_a_number_end_where_they_were_made_before() -> None:
    x = torch.ones(2, requires_grad=True)
    outside = x * 3
    begin = next_node_number()
    y = torch.relu(outside + 1) * x
    names = sorted(node.name() for node in made_since([y.grad_fn], begin))
    assert names == ["AddBackward0", "MulBackward0", "ReluBackward0"]
    assert made_since([outside.grad_fn], begin) == []


def test_a_held_node_of_a_python_function_keeps_its_graph() -> None:
    x = torch.full((2,), 3.0, requires_grad=True)

    def make() -> HeldNode:
        return HeldNode(Square.apply(x * 1))

    held = make()
    gc.collect()
    (multiplied,) = inputs_of(held.node)
    assert multiplied.name() == "MulBackward0"
    edge = torch.autograd.graph.GradientEdge
    token = (held._token,) if "ownership_token" in edge._fields else ()
    (grad,) = torch.autograd.grad(edge(held.node, 0, *token), x, torch.ones(2))
    assert grad.tolist() == [6.0, 6.0]


def test_the_node_of_a_leaf_is_the_one_that_adds_to_its_gradient() -> None:
    weight = nn.Parameter(torch.ones(2))
    assert leaf_of(HeldNode(weight).node) is weight
