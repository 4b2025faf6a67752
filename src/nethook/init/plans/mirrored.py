"""Where a deep plain network may start as a linear one: units in pairs of opposite sign.

With weights in pairs, [M; −M] before an activation f and [W, −W] after it, the second layer sees
M's output h as f(h) − f(−h), the odd part of f. That of ReLU, GELU and SiLU is a straight line (for
GELU and SiLU exactly: x Φ(x) + x Φ(−x) = x), so that a network of any depth starts as an orthogonal
map: scale, gradient and the angles between inputs are kept, and training makes it curved. A plain
network without pairs loses the angles, layer by layer, whatever its scale.
"""

from __future__ import annotations

from nethook.init.dataflow.residuals import Structure
from nethook.init.dataflow.roles import Use
from nethook.kinds.operations import PASS, POOLS

_FEWEST = 6  # layers in a row; a shallower network does not lose much
_CURVED = 0.9  # an activation that is straighter than that needs no help
_STRAIGHT = 0.97  # and one whose odd part is not straight is not helped

Pairs = dict[int, tuple[bool, bool]]  # node of a weight -> outputs in pairs, inputs in pairs


def pairs_of(structure: Structure, weights: dict[int, Use]) -> Pairs:
    """The weights that are to be mirrored. `weights` holds those that nethook will write."""
    edges = {}
    for node, use in weights.items():
        after = _followers(structure, weights, node, use)
        if after:
            edges[node] = after
    # How many layers in a row end in each.
    length: dict[int, int] = {}
    for node in sorted(edges):
        for follower in edges[node]:
            length[follower] = max(length.get(follower, 0), length.get(node, 0) + 1)
    longest: dict[int, int] = {}
    for node in sorted(edges, reverse=True):
        longest[node] = max(longest.get(follower, length[follower]) for follower in edges[node])
    pairs: Pairs = {}
    for node, after in edges.items():
        if longest[node] >= _FEWEST:
            pairs[node] = (True, pairs.get(node, (False, False))[1])
            for follower in after:
                pairs[follower] = (pairs.get(follower, (False, False))[0], True)
    return pairs


def _followers(structure: Structure, weights: dict[int, Use], node: int, use: Use) -> list[int]:
    """The weights that an activation after this one feeds, if pairs would survive on the way."""
    if not _is_one_matrix(use) or _in_branch(structure, node):
        return []
    outputs = structure.flow.parameters[use.param].tensor.shape[1 if _in_first(use) else 0]
    follows = structure.follows(node)
    if outputs % 2 or follows.norm or len(follows.functions) != 1 or len(follows.names) != 1:
        return []
    (function,) = follows.functions
    composites = structure.composites
    if composites.linearity(function) > _CURVED:
        return []
    if composites.linearity(function, odd=True) < _STRAIGHT:
        return []
    followers = []
    for follower in _reached(structure, function):
        after = weights.get(follower)
        if after is None or not _is_one_matrix(after) or _in_branch(structure, follower):
            return []
        shape = structure.flow.parameters[after.param].tensor.shape
        inputs = shape[0 if _in_first(after) else 1]
        if inputs % outputs or inputs % 2:
            return []
        followers.append(follower)
    return followers


def _reached(structure: Structure, index: int) -> list[int]:
    """What uses a value, or a view, a pool or a part of it."""
    users: list[int] = []
    left, seen = [index], set()
    while left:
        for child in structure.children[left.pop()]:
            if child not in seen:
                seen.add(child)
                through = structure.nodes[child].op in PASS | POOLS
                (left if through else users).append(child)
    return sorted(users)


def _is_one_matrix(use: Use) -> bool:
    layout = use.layout
    if layout is None or use.role != "weight":
        return False
    return layout.form in ("linear", "conv") and layout.groups == 1 and layout.blocks == 1


def _in_first(use: Use) -> bool:
    return use.layout is not None and use.layout.in_first


def _in_branch(structure: Structure, node: int) -> bool:
    """Whether a residual sum adds this value to one that does not come from it."""
    ancestors = structure.ancestors
    return any(
        add.residual and ancestors[add.branch] >> node & 1 and not ancestors[add.skip] >> node & 1
        for add in structure.adds_by_node.values()
    )
