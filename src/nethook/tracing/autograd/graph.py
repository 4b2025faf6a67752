"""`autograd_graph`: the nodes behind a tensor, and what made them."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.autograd.graph import GradientEdge, Node

from nethook.addresses.glob import translate
from nethook.addresses.nested import tensors
from nethook.addresses.tree import Tree
from nethook.errors import InputsError, NoGradientError, OptionError
from nethook.hooks.autograd.nodes import inputs_of, leaf_of, number
from nethook.hooks.modes import quiet
from nethook.torch_private import shapes_of_node
from nethook.tracing.autograd.drawing import draw
from nethook.tracing.autograd.node import GraphNode
from nethook.tracing.autograd.provenance import Makers, stretches
from nethook.tracing.tape.tape import Tape

if TYPE_CHECKING:
    import rich.tree

    from nethook.text.tree import TreeView


@dataclass(frozen=True, slots=True, repr=False)
class AutogradGraph:
    """The nodes behind a tensor, in the order in which a backward pass would run them.

    Plain data: it keeps no graph alive. `graph[i]` is a node; `graph.find("Addmm*")` are those of a
    name; printing it draws a tree; `to_dict()` is all of it for JSON.
    """

    nodes: tuple[GraphNode, ...]
    roots: tuple[int, ...]

    def find(self, name: str) -> list[GraphNode]:
        """The nodes whose name matches a glob: `graph.find("Addmm*")`."""
        expression: re.Pattern[str] = translate(name)
        return [node for node in self.nodes if expression.fullmatch(node.name)]

    def to_dict(self) -> dict[str, Any]:
        """All of it, as numbers, strings, lists and dicts."""
        return {"roots": list(self.roots), "nodes": [asdict(node) for node in self.nodes]}

    def tree(self, rows: int | None = None) -> str:
        """The whole tree as text, or what fits in so many rows."""
        return self._view(rows).text()

    def __getitem__(self, index: int) -> GraphNode:
        """The node of that number."""
        return self.nodes[index]

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self.nodes)

    def __repr__(self) -> str:
        from nethook.text.tree import ROWS_SHOWN

        return self._view(ROWS_SHOWN).text()

    def _repr_html_(self) -> str:
        return self._view(None).html()

    def __rich__(self) -> rich.tree.Tree:
        return self._view(None).rich()

    def _view(self, rows: int | None) -> TreeView:
        return draw(self.nodes, self.roots, rows)


def autograd_graph(
    tensor: Any, *, tape: Tape | None = None, model: nn.Module | None = None
) -> AutogradGraph:
    """Lists the autograd nodes behind a tensor: what a backward pass from it would run.

        with nethook.trace(model, nodes=True) as tape:
            loss = criterion(model(x), y)
        print(nethook.autograd_graph(loss, tape=tape))

    Arguments:
        tensor: a tensor, several in any nested value, or a node (`tensor.grad_fn`).
        tape: of a trace with `nodes=True`: tells which call of which site made each node, and
            the names of the model's parameters.
        model: tells the names of its parameters; not needed with a tape.

    Returns:
        An `AutogradGraph`, plain data that keeps no graph alive.

    Raises:
        NoGradientError: where no tensor requires a gradient.

    Each node is drawn once; where branches meet again the drawing goes on at the level where they
    parted. Which call made a node is known from torch's numbers of nodes, which each thread counts
    for itself: calls in other threads than the one that opened the graph's are not told apart.
    """
    if tape is not None and not tape.has_nodes:
        raise OptionError("`tape` must hold nodes; got one without. Trace with nodes=True.")
    if model is None and tape is not None:
        model = tape.model
    with quiet():
        roots = _roots(tensor)
        ordered = _in_order_of_backward(roots)
        index = {node: position for position, node in enumerate(ordered)}
        names = _parameter_names(model)
        makers = Makers(stretches(tape))
        nodes = tuple(
            _describe(position, node, index, names, makers) for position, node in enumerate(ordered)
        )
    return AutogradGraph(nodes, tuple(index[root] for root in dict.fromkeys(roots)))


def _roots(value: Any) -> list[Node]:
    if isinstance(value, GradientEdge):
        return [value.node]
    if isinstance(value, Node):
        return [value]
    members = [tensor for _, tensor in tensors(value)]
    if not members:
        raise InputsError(
            "`tensor` must be a tensor, a nested value of tensors, or a node such as "
            f"tensor.grad_fn; got {type(value).__name__}."
        )
    graded = [tensor for tensor in members if tensor.requires_grad]
    if not graded:
        raise NoGradientError(
            "there is no graph behind this tensor: it does not require a gradient. It was computed "
            "under no_grad or inference_mode, was detached, or nothing before it requires one."
        )
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in graded]
    return [edge.node for edge in edges]


def _in_order_of_backward(roots: list[Node]) -> list[Node]:
    """Every node behind `roots`: after those that pass it gradients, the latest made first."""
    consumers: dict[Node, int] = dict.fromkeys(roots, 0)
    waiting = list(consumers)
    while waiting:
        for before in inputs_of(waiting.pop()):
            if before not in consumers:
                consumers[before] = 0
                waiting.append(before)
            consumers[before] += 1
    ready: list[tuple[int, int, Node]] = []

    def push(node: Node) -> None:
        # That of a leaf has no number, and runs at once. The second number only breaks ties.
        made = number(node)
        heapq.heappush(ready, (-(2**64) if made is None else -made, id(node), node))

    for node, count in consumers.items():
        if count == 0:
            push(node)
    ordered: list[Node] = []
    while ready:
        node = heapq.heappop(ready)[2]
        ordered.append(node)
        for before in inputs_of(node):
            consumers[before] -= 1
            if consumers[before] == 0:
                push(before)
    return ordered


def _describe(
    position: int, node: Node, index: dict[Node, int], names: dict[int, str], makers: Makers
) -> GraphNode:
    # What a node takes in backward is what it made in the forward.
    made = shapes_of_node(node)
    leaf = leaf_of(node)
    address, call = makers.of(node) if leaf is None else (None, None)
    return GraphNode(
        index=position,
        name=node.name().rpartition("::")[2],  # a leaf's is torch::autograd::AccumulateGrad
        shapes=tuple(tuple(int(size) for size in like.shape) for like in made),
        dtypes=tuple(str(like.dtype).removeprefix("torch.") for like in made),
        address=address,
        call=call,
        leaf=None if leaf is None else names.get(id(leaf), "input"),
        inputs=tuple(index[before] for before in inputs_of(node)),
    )


def _parameter_names(model: nn.Module | None) -> dict[int, str]:
    if model is None:
        return {}
    return {id(site.tensor): site.address for site in Tree(model).parameters().sites}
