"""Sums, norms, streams and attention, read from a graph."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.init.dataflow.recorder import record
from nethook.init.dataflow.residuals import Structure
from tests.init.networks import mlp


class Net(nn.Module):
    """Four layers of width 8, used by a function."""

    def __init__(self, call: object) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Linear(8, 8) for _ in range(4))
        self.norm = nn.LayerNorm(8)
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(self, x)  # type: ignore[operator]


def structure(call: object, *shape: int) -> Structure:
    return Structure(record(Net(call), nethook.inputs(torch.randn(*(shape or (6, 8))))))


def node(found: Structure, op: str, number: int = 0) -> int:
    return [each.index for each in found.nodes if each.op == op][number]


def test_a_stream_of_residual_sums() -> None:
    def call(net: Net, x: torch.Tensor) -> torch.Tensor:
        x = net.a(x)
        x = x + net.b(x).relu()
        return net.c(net.d(x)) + x

    found = structure(call)
    first, second = found.adds_by_node.values()
    assert first.residual
    assert second.residual
    assert (first.number, second.number) == (1, 2)
    assert first.adds == second.adds == 2
    assert first.skip == node(found, "linear")
    assert second.branch == node(found, "linear", 3)  # the longer way, whichever side it is on
    assert found.stream_start(second) == first.skip


def test_a_sum_of_two_equal_ways_is_not_residual() -> None:
    found = structure(lambda net, x: net.a(x) + net.b(x))
    (add,) = found.adds_by_node.values()
    assert not add.residual


def test_adding_a_parameter_or_a_number_is_no_sum() -> None:
    found = structure(lambda net, x: net.a(x) + net.b.bias + 1.0)
    assert not found.adds_by_node


def test_norms_written_out_are_norms() -> None:
    def call(net: Net, x: torch.Tensor) -> torch.Tensor:
        h = net.a(x)
        return net.b(h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6))

    found = structure(call)
    product = node(found, "mul", -1)
    assert found.is_norm(product)
    assert not found.is_norm(node(found, "linear"))
    assert found.follows(node(found, "linear")).norm


def test_what_follows_a_weight() -> None:
    found = structure(lambda net, x: net.norm(net.b(net.a(x).relu())))
    after_a = found.follows(node(found, "linear"))
    assert after_a.names == ["relu"]
    assert after_a.functions == [node(found, "relu")]
    assert found.follows(node(found, "linear", 1)).norm == found.nodes[
        node(found, "layer_norm")
    ].address  # fmt: skip
    last = structure(lambda net, x: net.a(x))
    assert last.follows(node(last, "linear")).names == ["output"]


def test_ancestors_are_bits() -> None:
    found = Structure(record(mlp(3, nn.ReLU, 8), nethook.inputs(torch.randn(2, 8))))
    for each in found.nodes:
        reached, left = set(), [each.index]
        while left:
            current = left.pop()
            reached.add(current)
            left += found.nodes[current].parents
        assert found.ancestors[each.index] == sum(1 << index for index in reached)


def test_views_lead_back_to_their_origin() -> None:
    found = structure(lambda net, x: net.b(net.a(x).reshape(2, 3, 8)[:, 0]))
    used = found.nodes[node(found, "linear", 1)].parents[0]
    assert used != node(found, "linear")
    assert found.origin(used) == node(found, "linear")


def test_queries_keys_and_values() -> None:
    def call(net: Net, x: torch.Tensor) -> torch.Tensor:
        scores = (net.a(x) @ net.b(x).transpose(-1, -2)).softmax(-1)
        return net.d(scores @ net.c(x))

    found = structure(call, 2, 5, 8)
    parts = [found.attention_part(node(found, "linear", number)) for number in range(4)]
    assert parts == ["query", "key", "value", ""]

    def fused(net: Net, x: torch.Tensor) -> torch.Tensor:
        return net.d(F.scaled_dot_product_attention(net.a(x), net.b(x), net.c(x)))

    found = structure(fused, 2, 5, 8)
    parts = [found.attention_part(node(found, "linear", number)) for number in range(4)]
    assert parts == ["query", "key", "value", ""]


def test_what_sets_the_scale_of_a_value() -> None:
    found = structure(lambda net, x: net.norm(net.a(x)) + torch.tanh(net.b(x)) * 2)
    weights, norms = found.last_scales(found.nodes[-1].index)
    assert weights == [node(found, "linear", 1)]
    assert norms == [node(found, "layer_norm")]
