"""The mean square of every value of a forward, as it will be once the plan is applied.

Each planned weight is made to give the scale that is asked of it; everything between weights is
followed: an activation by its moments, a norm to 1, a sum by adding, a pool or a mix of values by
the factor that was measured in the forward that was recorded.
"""

from __future__ import annotations

import math

from nethook.init.dataflow.recorder import Node
from nethook.init.dataflow.residuals import Structure
from nethook.kinds.operations import FUSED_ATTENTION, PASS


class Scales:
    """Mean squares by node. `wanted` holds what a planned weight is to give."""

    def __init__(self, structure: Structure, wanted: dict[int, float]) -> None:
        self._structure = structure
        self._nodes = structure.nodes
        self._wanted = wanted
        self._squares: dict[int, float] = {}

    def of(self, index: int) -> float:
        """The mean square of a value."""
        # In order, not by recursion: a network may be a thousand layers deep.
        for needed in self._needed(index):
            self._squares[needed] = self._compute(self._nodes[needed])
        return self._squares[index]

    def _needed(self, index: int) -> list[int]:
        left, needed = [index], set()
        while left:
            current = left.pop()
            if current not in self._squares and current not in needed:
                needed.add(current)
                if current not in self._wanted:
                    left += self._nodes[current].parents
        return sorted(needed)

    def _compute(self, node: Node) -> float:
        wanted = self._wanted.get(node.index)
        if wanted is not None:
            return wanted
        if not node.parents or not node.floating:
            return _or_one(node.mean_square)
        structure = self._structure
        if structure.composites.source[node.index] != node.index:
            return self._of_function(node)
        if node.op in PASS:
            return self._squares[node.parents[0]]
        if structure.is_norm(node.index):
            return 1.0
        signals = [p for p in dict.fromkeys(node.parents) if self._structure.is_signal(p)]
        if node.op == "add" and len(signals) == 2 and not node.params:
            return sum(self._squares[p] for p in signals)
        if node.op in ("cat", "concat", "stack") and signals:
            total = sum(self._nodes[p].numel for p in signals)
            return sum(self._squares[p] * self._nodes[p].numel for p in signals) / max(total, 1)
        if node.op == "mul" and len(signals) == 2:
            return self._squares[signals[0]] * self._squares[signals[1]]
        if node.op == FUSED_ATTENTION and len(node.parents) >= 3:
            return self._scaled(node, node.parents[2])
        if signals:
            # The largest: what is mixed, not what says how.
            return self._scaled(node, max(signals, key=lambda p: self._nodes[p].numel))
        return _or_one(node.mean_square)

    def _of_function(self, node: Node) -> float:
        composites = self._structure.composites
        source = composites.source[node.index]
        if composites.is_copy(node.index):
            return self._squares[source]
        add = self._structure.adds_by_node.get(self._structure.origin(source))
        if add is not None and add.residual and math.isfinite(node.mean_square):
            # What a stream carries has passed that function before, and is far from normal.
            return self._scaled(node, source)
        moments = composites.moments(node.index, max(self._squares[source], 1e-12))
        return self._scaled(node, source) if moments is None else moments.second

    def _scaled(self, node: Node, parent: int) -> float:
        """As large against a parent as it was when the forward was recorded."""
        before, after = self._nodes[parent].mean_square, node.mean_square
        measured = before > 0 and math.isfinite(before) and math.isfinite(after)
        return self._squares[parent] * (after / before if measured else 1.0)


def _or_one(value: float) -> float:
    return value if math.isfinite(value) and value > 0 else 1.0
