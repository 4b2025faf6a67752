"""One node of an autograd graph, as plain data."""

import dataclasses
import json

import pytest
import torch

import nethook
from nethook.tracing.autograd.node import GraphNode

NODE = GraphNode(3, "MulBackward0", ((2, 3),), ("float32",), "fc", None, None, (4, 5))


def test_a_node_is_plain_data_that_nobody_changes():
    data = dataclasses.asdict(NODE)
    assert json.loads(json.dumps(data))["inputs"] == [4, 5]
    with pytest.raises(dataclasses.FrozenInstanceError):
        NODE.name = "other"
    assert not hasattr(NODE, "__dict__")


def test_equal_nodes_are_equal_and_can_be_counted():
    assert dataclasses.replace(NODE) == NODE
    assert len({NODE, dataclasses.replace(NODE), dataclasses.replace(NODE, index=4)}) == 2


def test_the_nodes_of_a_graph_say_what_torch_says():
    x = torch.ones(2, 3, requires_grad=True)
    y = (x * 2).sum()
    root, product, leaf = nethook.autograd_graph(y).nodes
    assert [node.index for node in (root, product, leaf)] == [0, 1, 2]
    assert (root.name, product.name) == (y.grad_fn.name(), y.grad_fn.next_functions[0][0].name())
    assert (root.shapes, product.shapes) == (((),), ((2, 3),))
    assert (root.inputs, product.inputs, leaf.inputs) == ((1,), (2,), ())
    assert (leaf.leaf, leaf.address, leaf.call) == ("input", None, None)
    assert root.dtypes == product.dtypes == ("float32",)
