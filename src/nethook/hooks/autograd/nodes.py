"""Autograd nodes: the one that made a tensor, and those that were made in a stretch of time.

torch numbers the nodes of a thread in the order in which they are made. So a call that began at one
number and ended at another made the nodes between them, and two numbers, which keep nothing alive,
tell later which call made a node. Nodes that add to the `.grad` of a leaf have no such number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node, get_gradient_edge

from nethook.hooks.modes import quiet
from nethook.torch_private import node_number

_NOT_NUMBERED = 2**64 - 1


class HeldNode:
    """A node with the graph behind it. Holding it keeps alive what the graph saved for backward."""

    __slots__ = ("_token", "node")

    def __init__(self, tensor: torch.Tensor) -> None:
        edge: Any = get_gradient_edge(tensor)
        self.node: Node = edge.node
        # A node of a Python function is owned by the graph, not by its Python object.
        self._token: object = getattr(edge, "ownership_token", None)  # since torch 2.9
        if self._token is None and isinstance(edge.node, BackwardCFunction):
            self._token = _next_node(tensor)


def _next_node(tensor: torch.Tensor) -> Node | None:
    """A node behind which lies the graph of `tensor`; no other graph has it in it."""
    with quiet(), torch.enable_grad():
        return tensor.view_as(tensor).grad_fn


def number(node: Node) -> int | None:
    """When the node was made, among those of its thread; None for that of a leaf."""
    made = node_number(node)
    return None if made == _NOT_NUMBERED else made


def inputs_of(node: Node) -> list[Node]:
    """The nodes to which a node passes gradients; what takes none is left out."""
    return [before for before, _ in node.next_functions if before is not None]


def leaf_of(node: Node) -> torch.Tensor | None:
    """The leaf to whose `.grad` a node adds; None where it is another kind of node."""
    leaf = getattr(node, "variable", None)
    return leaf if isinstance(leaf, torch.Tensor) and number(node) is None else None


def made_since(nodes: Iterable[Node], begin: int) -> list[Node]:
    """`nodes` and those behind them, back to the ones made before the number `begin`."""
    behind: dict[Node, None] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        made = number(node)
        if node not in behind and made is not None and made >= begin:
            behind[node] = None
            waiting += inputs_of(node)
    return list(behind)
