"""The leaves of a graph: the tensors to whose `.grad` a backward pass will add.

Nothing is computed and nothing is kept; the walk takes about a microsecond per node. Parameters
inside a reentrant checkpoint are not in the graph: their own graph is made during the pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import torch
from torch.autograd.graph import Node

from nethook.hooks.autograd.nodes import inputs_of, leaf_of

MOST: Final = 50_000
"""Nodes that are looked at: about 50 ms."""


class GraphLeaves(NamedTuple):
    """What a walk has found."""

    tensors: tuple[torch.Tensor, ...]
    nodes: int
    whole: bool
    """Whether all nodes were looked at."""
    second_order: bool
    """Whether a gradient was differentiated: forces of an energy, a gradient penalty."""


def leaves_of(roots: Iterable[torch.Tensor], most: int = MOST) -> GraphLeaves:
    """The leaves behind the roots of a backward pass; a root that is a leaf is one of them."""
    leaves: dict[int, torch.Tensor] = {}
    waiting: list[Node] = []
    for root in roots:
        if root.grad_fn is not None:
            waiting.append(root.grad_fn)
        elif root.requires_grad:
            leaves[id(root)] = root
    seen = set(waiting)
    second_order = False
    while waiting and len(seen) <= most:
        node = waiting.pop()
        into = inputs_of(node)
        if into:
            second_order = second_order or "BackwardBackward" in type(node).__name__
        elif (leaf := leaf_of(node)) is not None:
            leaves[id(leaf)] = leaf
        for other in into:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return GraphLeaves(tuple(leaves.values()), len(seen), not waiting, second_order)
