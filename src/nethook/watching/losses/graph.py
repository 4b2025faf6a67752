"""Walking the autograd graph from a loss to the model's output.

A root is a sum of terms: additions, factors, means and changes of shape are passed through, and
what stands behind them is a term: a loss function of torch, or the first operation that is none of
these. From a term a chain of operations leads to the output of a watched model, whose nodes the
watch has marked. Nodes are looked at and let go; nothing of a graph is kept.
"""

from __future__ import annotations

import functools
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from nethook.torch_private import saved_by, saved_without_hooks, shapes_of_node
from nethook.watching.losses.marks import OUTPUT_MARK, OutputMark

Node = Any
"""An autograd node: `tensor.grad_fn`."""

LOSS_NODES: Final = {
    "NllLoss": "nll",
    "NllLoss2D": "nll",
    "MseLoss": "mse",
    "SmoothL1Loss": "smooth_l1",
    "HuberLoss": "huber",
    "BinaryCrossEntropy": "bce",
    "BinaryCrossEntropyWithLogits": "bce_with_logits",
    "CtcLoss": "ctc",
    "CudnnCtcLoss": "ctc",
    "MultiMarginLoss": "multi_margin",
    "MultilabelMarginLoss": "multilabel_margin",
    "SoftMarginLoss": "soft_margin",
}
"""Nodes that are a loss function by themselves -> its kind."""

_SUMS: Final = {"Add", "Sub", "Rsub", "Stack", "Cat"}
_SHAPES: Final = {
    "Alias", "Clone", "Expand", "Index", "MaskedFill", "MaskedSelect", "Permute", "ReshapeAlias",
    "Select", "Slice", "Squeeze", "T", "ToCopy", "Transpose", "UnsafeView", "Unsqueeze", "View",
    "Where", "ViewCopy",
}  # fmt: skip
_CHOOSING: Final = {"Index", "MaskedFill", "MaskedSelect", "Where", "MaskedScatter", "IndexSelect"}
_FACTORS: Final = {"Mul", "Div"}
_REDUCTIONS: Final = {"Mean": "mean", "Sum": "sum", "Nansum": "sum"}

_MOST_NODES: Final = 128  # of the sum of terms that are looked at
_MOST_TERMS: Final = 16
_FAR: Final = 512  # nodes between a term and the model's output that are looked at
_INSIDE: Final = 8  # nodes that are named behind the model's output

Step = tuple[int, type]
"""One step through a graph: which edge to follow, and the type of the node it leads to."""


@dataclass(frozen=True)
class Factor:
    """What a term was multiplied by: a number, or None where reading it would wait for a device."""

    by: float | None
    tensor: bool = False  # one factor for each element, rather than one number


@dataclass
class Term:
    """One of the summands of a loss, and how it is reached from the root."""

    node: Node
    steps: tuple[Step, ...] = ()  # from the root to the node
    factors: tuple[Factor, ...] = ()
    passed: tuple[Node, ...] = ()  # the nodes between the root and this one, the root first
    # The path from the node to the output of a model, that one included; empty where there is none.
    behind: tuple[Node, ...] = ()
    behind_steps: tuple[Step, ...] = ()
    mark: OutputMark | None = None
    inside: tuple[str, ...] = field(default=())  # names of the nodes behind the output

    @property
    def factor(self) -> float | None:
        """The product of all factors that are one number; None where one of them is unknown."""
        product = 1.0
        for factor in self.factors:
            if factor.tensor:
                continue
            if factor.by is None:
                return None
            product *= factor.by
        return product

    @property
    def is_masked(self) -> bool:
        """Whether elements may have been left out, or weigh less than others."""
        chosen = any(name_of(node) in _CHOOSING for node in (*self.passed, *self.behind))
        return chosen or any(factor.tensor for factor in self.factors)

    @property
    def reductions(self) -> list[str]:
        """`mean` and `sum`, in the order from the root."""
        return [_REDUCTIONS[name] for name in map(name_of, self.passed) if name in _REDUCTIONS]


@functools.lru_cache(maxsize=1024)
def _type_name(node_type: type) -> str:
    return re.sub(r"Backward\d*$", "", node_type.__name__)


def name_of(node: Node) -> str:
    """The name of an operation: `NllLoss` of a NllLossBackward0."""
    kind: type = type(node)
    return _type_name(kind)


def shape_of(node: Node, output: int = 0) -> tuple[int, ...] | None:
    """The shape of what an operation returned; None where torch does not say."""
    try:
        return tuple(int(size) for size in shapes_of_node(node)[output].shape)
    except (AttributeError, IndexError, RuntimeError, TypeError):
        return None


def saved(node: Node, name: str) -> torch.Tensor | None:
    """A tensor that a node has kept for its backward, detached.

    None where it kept none, where it was freed or written since, and where a hook for saved
    tensors would have to run: that is the script's own, and may compute half of the network anew.
    """
    try:
        value = saved_without_hooks(node, name)
    except (AttributeError, RuntimeError):
        return None
    return value.detach() if isinstance(value, torch.Tensor) else None


def option(node: Node, name: str) -> Any:
    """A number that a node has kept (`reduction`, `exponent`, …); None where there is none."""
    try:
        return saved_by(node, name)
    except RuntimeError:
        return None


def signed(number: int) -> int:
    """Torch shows a negative number of a node as the unsigned one with the same bits."""
    return number - (1 << 64) if number >= 1 << 63 else number


def mark_of(node: Node) -> OutputMark | None:
    """Which output of a watched model a node has made."""
    mark = node.metadata.get(OUTPUT_MARK) if hasattr(node, "metadata") else None
    # A loss that the model returned itself is marked too, and is no output to be judged by.
    if mark is None or _is_scalar(node):
        return None
    return mark if isinstance(mark, OutputMark) else None


def _is_scalar(node: Node) -> bool:
    shape = shape_of(node)
    return shape is not None and shape == ()


def terms_of(root: Node, *, scaled: bool = False) -> list[Term]:
    """The summands of a loss. With `scaled` the first factor is a loss scaler's, and left out."""
    terms: list[Term] = []
    waiting = deque([Term(root)])
    looked_at = 0
    while waiting:
        term = waiting.popleft()
        looked_at += 1
        following = None
        if looked_at <= _MOST_NODES and len(terms) + len(waiting) < _MOST_TERMS:
            following = _through(term)
        if following is None:
            terms.append(term)
        else:
            waiting.extend(following)
    if scaled:
        for term in terms:
            term.factors = _without_scale(term.factors)
    return terms


def _without_scale(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    for index, factor in enumerate(factors):
        if not factor.tensor:
            return factors[:index] + factors[index + 1 :]
    return factors


def _through(term: Term) -> list[Term] | None:
    """The terms behind one that is no more than a sum, a factor or a change of shape."""
    node = term.node
    name = name_of(node)
    edges = [
        (index, edge[0]) for index, edge in enumerate(node.next_functions) if edge[0] is not None
    ]
    if name in LOSS_NODES or not edges:
        return None
    if mark_of(node) is not None:
        return None  # the output itself: the loss is linear in it
    if name in _SUMS:
        return [_next(term, index, into, _sign(node, name, index)) for index, into in edges]
    if name in _REDUCTIONS or name in _SHAPES:
        return [_next(term, index, into) for index, into in edges]
    if name == "Neg":
        return [_next(term, index, into, Factor(-1.0)) for index, into in edges]
    if name == "Sqrt" and _is_scalar(node):
        return [_next(term, index, into) for index, into in edges]  # of a mean of squares
    if (factor := factor_of(node)) is not None:
        index, into = edges[0]
        return [_next(term, index, into, factor)]
    return None


def factor_of(node: Node) -> Factor | None:
    """What a node multiplies its only input by; None where it does something else."""
    name = name_of(node)
    if name not in _FACTORS:
        return None
    edges = [index for index, edge in enumerate(node.next_functions) if edge[0] is not None]
    if len(edges) != 1 or (name == "Div" and edges[0] == 1):  # the reciprocal of something
        return None
    factor = _factor(node, edges[0])
    if name == "Div" and factor.by is not None:
        return Factor(1.0 / factor.by if factor.by else None, factor.tensor)
    return factor


def _sign(node: Node, name: str, edge: int) -> Factor | None:
    # `rsub(x, y)` is y − alpha·x; all others have alpha at the second operand.
    if edge != (0 if name == "Rsub" else 1) or name in {"Stack", "Cat"}:
        return None
    alpha = option(node, "alpha")
    size = float(alpha) if isinstance(alpha, int | float) else 1.0
    size = size if name == "Add" else -size
    return None if size == 1.0 else Factor(size)


def _factor(node: Node, edge: int) -> Factor:
    """What a node multiplies its input number `edge` by."""
    other = saved(node, "self" if edge == 1 else "other")
    if other is None:
        number = option(node, "other")
        return Factor(float(number)) if isinstance(number, int | float) else Factor(None)
    if other.dim():
        return Factor(None, tensor=True)
    return Factor(other.item() if other.device.type == "cpu" else None)


def _next(term: Term, edge: int, node: Node, factor: Factor | None = None) -> Term:
    factors = term.factors if factor is None else (*term.factors, factor)
    return Term(node, (*term.steps, (edge, type(node))), factors, (*term.passed, term.node))


def find_output(term: Term) -> None:
    """Fills in the shortest path from a term to the output of a watched model."""
    start = term.node
    mark = mark_of(start)
    if mark is not None:
        term.mark = mark
        term.inside = _names_inside(start)
        return
    seen = {start}
    waiting: deque[tuple[Node, tuple[Node, ...], tuple[Step, ...]]] = deque([(start, (), ())])
    while waiting and len(seen) < _FAR:
        node, path, steps = waiting.popleft()
        for index, (into, _) in enumerate(node.next_functions):
            if into is None or into in seen:
                continue
            seen.add(into)
            further = (*path, into)
            further_steps = (*steps, (index, type(into)))
            mark = mark_of(into)
            if mark is not None:
                term.behind, term.behind_steps, term.mark = further, further_steps, mark
                term.inside = _names_inside(into)
                return
            waiting.append((into, further, further_steps))


def straight_behind(node: Node, most: int = _INSIDE) -> list[Node]:
    """The nodes behind one, while there is but one way to go."""
    path: list[Node] = []
    while len(path) < most:
        inputs = [into for into, _ in node.next_functions if into is not None]
        if len(inputs) != 1 or is_leaf(inputs[0]):
            break
        node = inputs[0]
        path.append(node)
    return path


def _names_inside(node: Node) -> tuple[str, ...]:
    return tuple(name_of(behind) for behind in straight_behind(node))


def is_leaf(node: Node) -> bool:
    """Whether a node stands for a parameter (or another leaf)."""
    return name_of(node) == "AccumulateGrad"


def follow(root: Node, steps: tuple[Step, ...]) -> Node | None:
    """The node that some steps lead to; None where the graph is another one by now."""
    node = root
    for edge, node_type in steps:
        edges = node.next_functions
        if edge >= len(edges):
            return None
        node = edges[edge][0]
        if type(node) is not node_type and not is_alike(type(node), node_type):
            return None
    return node


def is_alike(first: type, second: type) -> bool:
    """Whether nodes of two types do the same: each compiled graph has a type of its own.

    A model is compiled anew for another shape, mode or setting, and its loss stays the same one.
    """
    made = torch.autograd.function.BackwardCFunction
    return (
        issubclass(first, made)
        and issubclass(second, made)
        and (first.__module__, first.__qualname__) == (second.__module__, second.__qualname__)
    )
