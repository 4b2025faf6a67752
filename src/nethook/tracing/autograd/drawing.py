"""How an autograd graph is drawn: chains run down the page, and only what parts is indented.

A plain tree of a graph a thousand nodes deep would be a thousand levels deep, and would draw what
two branches share twice. Here a node that passes gradients to several others opens a branch for
each, down to the node where they all meet again, and the chain goes on from there at the level at
which they parted. A way of one step to a parameter, beside others (the transposed weight of a
matrix product), is written beside the node it leads from.
"""

from __future__ import annotations

from collections.abc import Sequence

from nethook.text.numbers import count
from nethook.text.tree import Branch, TreeView
from nethook.tracing.autograd.node import GraphNode

_DEEPEST = 40  # levels; a graph that parts within branches more often is cut there


def draw(nodes: Sequence[GraphNode], roots: Sequence[int], rows: int | None) -> TreeView:
    """The drawing of a graph."""
    leaves = [node for node in nodes if node.leaf is not None]
    inside = count(len(nodes) - len(leaves), "node")
    title = f"autograd graph: {inside}, {count(len(leaves), 'leaf').replace('leafs', 'leaves')}"
    columns = ("node", "made", "by", "gradients to")
    drawing = _Drawing(nodes, roots)
    return TreeView(title, columns, drawing.branches(), rows)


class _Drawing:
    def __init__(self, nodes: Sequence[GraphNode], roots: Sequence[int]) -> None:
        self._nodes = nodes
        self._roots = roots
        self._meets = self._meeting_points()
        self._drawn: set[int] = set()

    def branches(self) -> tuple[Branch, ...]:
        if len(self._roots) == 1:
            return tuple(self._chain(self._roots[0], None, 0))
        return tuple(
            Branch((f"root {number}", "", "", ""), tuple(self._chain(root, None, 1)))
            for number, root in enumerate(self._roots)
        )

    def _chain(self, start: int | None, stop: int | None, depth: int) -> list[Branch]:
        """The nodes from `start` on, down to `stop`, which is not drawn."""
        chain: list[Branch] = []
        index = start
        while index is not None and index != stop:
            if index in self._drawn:
                chain.append(Branch((f"↑ {self._label(index)}, above", "", "", "")))
                break
            self._drawn.add(index)
            on = self._onward(index)
            if len(on) < 2:
                chain.append(self._row(index, ()))
                index = on[0] if on else None
            else:
                meet = self._meets.get(index)
                inner = [Branch(("… deeper than is drawn", "", "", ""))]
                if depth < _DEEPEST:
                    inner = [self._opened(after, meet, depth + 1) for after in on]
                chain.append(self._row(index, tuple(inner)))
                index = meet
        return chain

    def _opened(self, start: int, meet: int | None, depth: int) -> Branch:
        """One branch: its first node, with the rest of its chain below."""
        if start == meet:
            return Branch(("(straight on)", "", "", ""))
        first, *rest = self._chain(start, meet, depth)
        return Branch(first.cells, (*first.children, *rest))

    def _row(self, index: int, children: tuple[Branch, ...]) -> Branch:
        node = self._nodes[index]
        made = ", ".join(str(shape) for shape in node.shapes)
        by = "" if node.address is None else node.address or '""'
        if node.call is not None:
            by += f" (call {node.call})"
        inputs = dict.fromkeys(node.inputs)
        to = [leaf for before in inputs if (leaf := self._leaf_at(before, node)) is not None]
        shown = ", ".join(to[:4]) + (f" and {len(to) - 4} more" if len(to) > 4 else "")
        own = node.leaf if node.leaf is not None else shown
        return Branch((self._label(index), made, by, own), children)

    def _label(self, index: int) -> str:
        return f"{self._nodes[index].name} #{index}"

    def _onward(self, index: int) -> list[int]:
        """The nodes that a node passes gradients to, those to leaves left out."""
        node = self._nodes[index]
        return [
            before for before in dict.fromkeys(node.inputs) if self._leaf_at(before, node) is None
        ]

    def _leaf_at(self, index: int, above: GraphNode) -> str | None:
        """The leaf that a node is, or leads to in one step of the same call; None for others."""
        node = self._nodes[index]
        if node.leaf is not None:
            return node.leaf
        beside_others = len(set(above.inputs)) > 1 and node.address == above.address
        return self._nodes[node.inputs[0]].leaf if beside_others and len(node.inputs) == 1 else None

    def _meeting_points(self) -> dict[int, int]:
        """For each node, the first that lies on every way from it (its post-dominator).

        Nodes are numbered so that ways lead upwards, so all inputs of a node are done before it.
        """
        meets: dict[int, int] = {}
        height: dict[int, int] = {}
        for node in reversed(self._nodes):
            on = self._onward(node.index)
            met: int | None = on[0] if on else None
            for other in on[1:]:
                met = _common(met, other, meets, height)
            if met is not None:
                meets[node.index] = met
                height[node.index] = height[met] + 1
            else:
                height[node.index] = 0
        return meets


def _common(
    one: int | None, other: int | None, meets: dict[int, int], height: dict[int, int]
) -> int | None:
    """The first node at which the ways from two nodes meet; None where they never do.

    Both fingers climb the tree of meeting points, the higher one first, until they are at one node
    (Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm").
    """
    while one != other:
        if one is None or other is None:
            return None
        if height[one] >= height[other]:
            one = meets.get(one)
        else:
            other = meets.get(other)
    return one
