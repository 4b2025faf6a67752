"""Whether the gradient of a policy's loss reaches the critic that it is weighed with.

The product of a likelihood's logarithm with "reward less value" has gradients on both sides: that
of the value pushes it to wherever the policy's loss is small. Only the graph is read, from the root
to the product and a few nodes behind it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

import torch

from nethook.watching.losses.graph import Node, is_leaf, name_of, shape_of, terms_of

_NEAR: Final = 64
"""Nodes behind a side of the product that are looked at."""
_LAYERS: Final = frozenset(
    {"Addmm", "Mm", "Mv", "Bmm", "Addbmm", "Baddbmm", "Dot", "Convolution", "MkldnnRnnLayer"}
)
_LIKELIHOODS: Final = frozenset({"LogSoftmax", "Logsumexp", "NllLoss", "NllLoss2D"})
# What leaves "reward less value" what it is: its shape, its scale, and where it is centred.
_PLAIN: Final = frozenset(
    {"Sub", "Rsub", "Add", "Neg", "Mul", "Div", "Mean", "Sum", "Std", "Var", "Stack", "Cat",
     "View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Select", "Slice", "Index",
     "Expand", "Clone", "ToCopy", "Alias", "Transpose", "Permute", "T", "Unbind", "Split"}
)  # fmt: skip


def has_critic(roots: Sequence[torch.Tensor]) -> bool:
    """Whether a summand of a loss is such a product."""
    return any(
        _is_policy(term.node)
        for root in roots
        if root.grad_fn is not None
        for term in terms_of(root.grad_fn)
    )


def _is_policy(node: Node) -> bool:
    if name_of(node) != "Mul":
        return False
    sides = [into for into, _ in node.next_functions if into is not None]
    if len(sides) != 2 or sides[0] is sides[1]:
        return False
    return any(
        _is_likelihood(one) and _is_advantage(other) for one, other in itertools.permutations(sides)
    )


def _is_likelihood(side: Node) -> bool:
    names = {name_of(node) for node in _behind(side)}
    return bool(names & _LIKELIHOODS) or ("Log" in names and bool(names & {"Softmax", "Sigmoid"}))


def _is_advantage(side: Node) -> bool:
    """Data less the one output of a layer, with nothing else on the way."""
    differs = valued = False
    for node in _behind(side):
        name = name_of(node)
        if name in _LAYERS:
            shape = shape_of(node)
            if not shape or shape[-1] != 1:
                return False
            valued = True
        elif name not in _PLAIN:
            return False
        elif name in ("Sub", "Rsub") and any(into is None for into, _ in node.next_functions):
            differs = True
    return differs and valued


def _behind(side: Node) -> Iterator[Node]:
    """The nodes behind a side, up to the first layers."""
    waiting, seen = deque([side]), {side}
    while waiting and len(seen) < _NEAR:
        node = waiting.popleft()
        yield node
        if name_of(node) in _LAYERS:
            continue
        for into, _ in node.next_functions:
            if into is not None and into not in seen and not is_leaf(into):
                seen.add(into)
                waiting.append(into)
