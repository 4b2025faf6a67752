"""The summands of a loss as its author wrote them, and how large each of them is.

`loss = reconstruction + 0.1 * kl` has two parts, whatever they are made of. Autograd keeps no value
of a part; that of a loss function of torch is computed anew from what its node has kept, and so is
that of simple means and sums. Of a part that cannot be computed the value is what the others leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.nn import functional as F

from nethook.addresses.paths import show_path
from nethook.hooks.modes import unrecorded
from nethook.stats.shards import is_shared
from nethook.watching.losses.graph import (
    LOSS_NODES,
    Node,
    Term,
    factor_of,
    name_of,
    option,
    saved,
    shape_of,
    signed,
)
from nethook.watching.losses.kept import Kept
from nethook.watching.losses.kinds import LARGE, Made, Operands, operands_of

MOST: Final = 6
"""A loss with more parts is the sum over something: time steps, micro-batches."""
_DEEP: Final = 12  # operations between a part and what was kept
_BY_ELEMENT: Final = frozenset({"AccumulateGrad", "Addmm", "Exp", "Log", "Pow", "Sigmoid", "Tanh"})
_PASSED: Final = frozenset({"Alias", "Clone", "ToCopy", "Squeeze", "View"})


@dataclass(frozen=True)
class Part:
    """One summand: the node that has made it, and what it was multiplied by.

    `reduced` is how a sum over samples, `(a + b).mean()`, makes one number of it: `Mean` or `Sum`;
    "" where it is one number by itself.
    """

    node: Node
    factor: float
    reduced: str = ""


def parts_of(root: Node, scale: float = 1.0) -> list[Part]:
    """The summands of a loss, each of them one number; empty where there is but one.

    `scale` is a loss scaler's factor, which is left out.
    """
    found: list[Part] = []
    waiting = [Part(root, 1.0 / scale)]
    while waiting:
        part = waiting.pop(0)
        further = _apart(part)
        if further is None:
            found.append(part)
        else:
            waiting.extend(further)
        if len(found) + len(waiting) > MOST:
            return []
    return found if len(found) > 1 else []


def _apart(part: Part) -> list[Part] | None:
    node, name = part.node, name_of(part.node)
    if part.reduced:
        return _apart_by_sample(part)
    if shape_of(node) != () or name in LOSS_NODES:
        return None
    edges = [(index, edge) for index, (edge, _) in enumerate(node.next_functions) if edge]
    if name in ("Add", "Sub"):
        alpha = option(node, "alpha")
        size = float(alpha) if isinstance(alpha, int | float) else 1.0
        size = size if name == "Add" else -size
        return [Part(edge, part.factor * (size if index else 1.0)) for index, edge in edges]
    if name in ("Mul", "Div"):
        factor = factor_of(node)
        if factor is None or factor.tensor or factor.by is None or not edges:
            return None
        inner = edges[0][1]
        return [Part(inner, part.factor * factor.by)] if shape_of(inner) == () else None
    if name == "Neg" and edges and shape_of(edges[0][1]) == ():
        return [Part(edges[0][1], -part.factor)]
    if name in _PASSED and edges and shape_of(edges[0][1]) == ():
        return [Part(edges[0][1], part.factor)]
    if name in ("Sum", "Mean") and edges and name_of(edges[0][1]) == "Stack":
        inner = [edge for edge, _ in edges[0][1].next_functions if edge is not None]
        by = 1.0 / max(len(inner), 1) if name == "Mean" else 1.0
        if all(shape_of(edge) == () for edge in inner):
            return [Part(edge, part.factor * by) for edge in inner]
    if name in ("Sum", "Mean") and edges and name_of(edges[0][1]) in ("Add", "Sub"):
        inner = Part(edges[0][1], part.factor, name)
        return [inner] if _apart_by_sample(inner) is not None else None
    return None


def _apart_by_sample(part: Part) -> list[Part] | None:
    """The summands of a loss that is added up sample by sample before it is reduced."""
    node, name = part.node, name_of(part.node)
    edges = [(index, edge) for index, (edge, _) in enumerate(node.next_functions) if edge]
    shapes = {shape_of(edge) for _, edge in edges}
    if name not in ("Add", "Sub") or len(edges) != 2 or shapes != {shape_of(node)}:
        return None
    if name_of(edges[0][1]) in _BY_ELEMENT or name_of(edges[1][1]) in _BY_ELEMENT:
        return None  # (prediction - target), mu + sigma * noise: one thing
    alpha = option(node, "alpha")
    size = float(alpha) if isinstance(alpha, int | float) else 1.0
    size = size if name == "Add" else -size
    return [
        Part(edge, part.factor * (size if index else 1.0), part.reduced) for index, edge in edges
    ]


@unrecorded
def part_numbers(
    parts: list[Part], terms: tuple[tuple[Term, Made], ...], kept: Kept
) -> torch.Tensor:
    """(2, parts): the value of each, and what an answer that is the same for all inputs scores.

    NaN where that is not known. Both are without the factor.
    """
    values, constants = [], []
    for part in parts:
        value = value_of(part.node, kept)
        if value is not None and part.reduced:
            value = value.mean() if part.reduced == "Mean" else value.sum()
        values.append(value)
        inside = [pair for pair in terms if _is_within(pair[0], part.node)]
        operands = operands_of(*inside[0], kept) if len(inside) == 1 else Operands()
        constants.append(_constant(operands, inside[0][1]) if inside else None)
    there = [value for value in (*values, *constants) if value is not None]
    device = there[0].device if there else torch.device("cpu")
    numbers = [_number(value, device) for value in (*values, *constants)]
    return torch.stack(numbers).reshape(2, len(parts))


def described(parts: list[Part], terms: tuple[tuple[Term, Made], ...]) -> list[dict[str, Any]]:
    """Each part as plain data: what it is made of, its factor, and the output it is taken of."""
    plain = []
    for part in parts:
        inside = [pair for pair in terms if _is_within(pair[0], part.node)]
        marks = [term.mark for term, _ in inside if term.mark is not None]
        plain.append(
            {
                "kinds": [made.kind for _, made in inside],
                "factor": part.factor,
                "path": show_path(marks[0].path) if marks else None,
            }
        )
    return plain


def _is_within(term: Term, node: Node) -> bool:
    return term.node is node or any(passed is node for passed in term.passed)


def _number(value: torch.Tensor | None, device: torch.device) -> torch.Tensor:
    if value is None or value.numel() != 1 or value.device != device:
        return torch.full((), float("nan"), device=device)
    return value.detach().float().reshape(())


def _constant(operands: Operands, made: Made) -> torch.Tensor | None:
    """The score of the best constant answer, as far as one batch tells."""
    target, prediction = operands.target, operands.prediction
    if target is None or prediction is None or made.reduction not in ("mean", "sum"):
        return None
    score = _constant_mean(operands, made, target, prediction)
    if score is None or made.reduction == "mean":
        return score
    return score * (target.numel() if made.kind not in ("cross_entropy", "nll") else math.nan)


def _constant_mean(
    operands: Operands, made: Made, target: torch.Tensor, prediction: torch.Tensor
) -> torch.Tensor | None:
    if _unfit(target) or made.options.get("weight") or made.options.get("pos_weight"):
        return None
    if made.kind in ("cross_entropy", "nll") and target.dim() < prediction.dim():
        labels = target.reshape(-1)
        classes = torch.arange(prediction.shape[operands.classes or 0], device=target.device)
        if len(classes) * len(labels) > LARGE:
            return None
        counts = (labels[:, None] == classes).sum(0).float()
        total = counts.sum().clamp(min=1.0)
        # A sample shows less than there is: the correction of Miller and Madow.
        entropy = torch.special.entr(counts / total).sum() + ((counts > 0).sum() - 1) / (2 * total)
        return _of_several(entropy, (counts > 0).sum() > 1)
    if made.kind == "mse" and target.dim() and len(target) > 1:
        return target.float().var(0).mean()
    if made.kind in ("bce", "bce_with_logits") and target.dim() and len(target) > 1:
        share = target.float().mean(0)
        inside = (share > 0) & (share < 1)
        entropy = torch.special.entr(torch.stack([share, 1 - share])).sum(0)
        entropy = torch.where(inside, entropy + 0.5 / len(target), entropy)
        return _of_several(entropy.mean(), inside.any())
    return None


def _of_several(score: torch.Tensor, several: torch.Tensor) -> torch.Tensor:
    """Not known where all targets are one class: those of an adversary, say."""
    return torch.where(several, score, torch.full_like(score, float("nan")))


def _unfit(tensor: torch.Tensor) -> bool:
    return (
        is_shared(tensor)
        or tensor.layout is not torch.strided
        or tensor.is_complex()
        or tensor.numel() > LARGE
    )


# -- values ---------------------------------------------------------------------------------------


def value_of(node: Node, kept: Kept, deep: int = _DEEP) -> torch.Tensor | None:
    """What a node has returned, computed from what is kept; None where that is not possible."""
    name = name_of(node)
    made = _BY_NAME.get(name)
    if made is None or deep <= 0:
        return kept.output(node)
    try:
        value = made(node, kept, deep)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
        return None
    return None if value is None or _unfit(value) else value


def _input(node: Node, kept: Kept, deep: int, index: int = 0) -> torch.Tensor | None:
    edge = node.next_functions[index][0] if index < len(node.next_functions) else None
    return None if edge is None else value_of(edge, kept, deep - 1)


def _reduced(node: Node, kept: Kept, deep: int) -> torch.Tensor | None:
    inner = _input(node, kept, deep)
    if inner is None:
        return None
    function = torch.mean if name_of(node) == "Mean" else torch.sum
    if shape_of(node) == ():
        return function(inner)
    dims = option(node, "dim")
    if not isinstance(dims, int | tuple | list):
        return None
    dims = [signed(dim) for dim in ([dims] if isinstance(dims, int) else dims)]
    reduced = function(inner, dim=dims, keepdim=bool(option(node, "keepdim")))
    return reduced if tuple(reduced.shape) == tuple(shape_of(node) or ()) else None


def _operand(node: Node, kept: Kept, deep: int, index: int, name: str) -> Any:
    value = saved(node, name)
    if value is None:
        value = _input(node, kept, deep, index)
    return option(node, name) if value is None else value


def _product(node: Node, kept: Kept, deep: int) -> torch.Tensor | None:
    first = _operand(node, kept, deep, 0, "self")
    second = _operand(node, kept, deep, 1, "other")
    if first is None or second is None:
        return None
    result = first / second if name_of(node) == "Div" else first * second
    return result if isinstance(result, torch.Tensor) else None


def _sum(node: Node, kept: Kept, deep: int) -> torch.Tensor | None:
    first, second = _input(node, kept, deep, 0), _input(node, kept, deep, 1)
    if first is None or second is None:
        return None
    alpha = option(node, "alpha")
    by = float(alpha) if isinstance(alpha, int | float) else 1.0
    return first + by * second if name_of(node) == "Add" else first - by * second


def _of_self(function: Callable[[torch.Tensor, Node], torch.Tensor]) -> Any:
    def made(node: Node, _kept: Kept, _deep: int) -> torch.Tensor | None:
        value = saved(node, "self")
        return None if value is None or _unfit(value) else function(value, node)

    return made


def _result(node: Node, _kept: Kept, _deep: int) -> torch.Tensor | None:
    return saved(node, "result")


def _negated(node: Node, kept: Kept, deep: int) -> torch.Tensor | None:
    inner = _input(node, kept, deep)
    return None if inner is None else -inner


def _reshaped(node: Node, kept: Kept, deep: int) -> torch.Tensor | None:
    inner, shape = _input(node, kept, deep), shape_of(node)
    return None if inner is None or shape is None else inner.reshape(shape)


def _loss(function: Callable[..., torch.Tensor], *settings: str) -> Any:
    """A loss function of torch, from its node."""

    def made(node: Node, _kept: Kept, _deep: int) -> torch.Tensor | None:
        prediction, target = saved(node, "self"), saved(node, "target")
        if prediction is None or target is None or prediction.numel() > 16 * LARGE:
            return None
        options = {}
        for name in settings:
            tensor = saved(node, name) if name in ("weight", "pos_weight") else option(node, name)
            if tensor is not None:
                options[name] = tensor
        reduction = _REDUCED[option(node, "reduction")]
        return function(prediction, target, reduction=reduction, **options)

    return made


def _nll(node: Node, _kept: Kept, _deep: int) -> torch.Tensor | None:
    prediction, target = saved(node, "self"), saved(node, "target")
    if prediction is None or target is None:
        return None
    ignored = signed(option(node, "ignore_index"))
    reduction = _REDUCED[option(node, "reduction")]
    weight = saved(node, "weight")
    return F.nll_loss(prediction, target, weight, ignore_index=ignored, reduction=reduction)


_REDUCED: Final = ("none", "mean", "sum")
_BY_NAME: Final[dict[str, Callable[[Node, Kept, int], torch.Tensor | None]]] = {
    "NllLoss": _nll, "NllLoss2D": _nll,
    "MseLoss": _loss(F.mse_loss),
    "SmoothL1Loss": _loss(F.smooth_l1_loss, "beta"),
    "HuberLoss": _loss(F.huber_loss, "delta"),
    "BinaryCrossEntropy": _loss(F.binary_cross_entropy, "weight"),
    "BinaryCrossEntropyWithLogits": _loss(
        F.binary_cross_entropy_with_logits, "weight", "pos_weight"
    ),
    "Mean": _reduced, "Sum": _reduced,
    "Mul": _product, "Div": _product, "Add": _sum, "Sub": _sum, "Neg": _negated,
    "Pow": _of_self(lambda value, node: value ** option(node, "exponent")),
    "Abs": _of_self(lambda value, _: value.abs()),
    "Log": _of_self(lambda value, _: value.log()),
    "Softplus": _of_self(lambda value, _: F.softplus(value)),
    "Exp": _result, "Sqrt": _result, "Sigmoid": _result, "Tanh": _result, "Relu": _result,
    "LogSoftmax": _result, "Softmax": _result, "LinalgVectorNorm": _result, "Norm": _result,
    "View": _reshaped, "UnsafeView": _reshaped, "ReshapeAlias": _reshaped,
    "Squeeze": _reshaped, "Unsqueeze": _reshaped,
}  # fmt: skip
