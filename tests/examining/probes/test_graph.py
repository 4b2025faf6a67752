"""What autograd's graph knows of a run."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.probes.graph import (
    gradients,
    nodes_behind,
    softmax_over_first,
    uses_batch_statistics,
)


def test_every_node_comes_once() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    z = y * y + y
    names = sorted(node.name().rpartition(":")[2] for node in nodes_behind(z))
    assert names == ["AccumulateGrad", "AddBackward0", "ExpBackward0", "MulBackward0"]
    assert list(nodes_behind(x.detach())) == []


def test_batch_norm_in_either_mode() -> None:
    norm = nn.BatchNorm1d(3)
    x = torch.randn(8, 3)
    assert uses_batch_statistics(norm(x))
    assert not uses_batch_statistics(norm.eval()(x))
    weight = torch.ones(3, requires_grad=True)
    assert uses_batch_statistics(F.batch_norm(x, None, None, weight, training=True))


def test_a_softmax_over_the_first_dimension() -> None:
    x = torch.randn(8, 3, requires_grad=True)
    assert softmax_over_first(x.softmax(0).sum())
    assert not softmax_over_first(x.softmax(1).sum())
    assert not softmax_over_first(x.reshape(-1).softmax(0).sum())


def test_gradients_by_what_has_none() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    one, none = gradients((3 * x).sum(), x, y)
    assert one is not None
    assert one.tolist() == [3, 3]
    assert none is None
