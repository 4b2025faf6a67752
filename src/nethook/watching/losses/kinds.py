"""What kind of loss a term is, and which tensors went into it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from nethook.hooks.modes import unrecorded
from nethook.stats.shards import is_shared
from nethook.torch_private import raw_saved_by
from nethook.watching.losses.graph import (
    LOSS_NODES,
    Factor,
    Node,
    Term,
    factor_of,
    is_leaf,
    name_of,
    option,
    saved,
    shape_of,
    signed,
    straight_behind,
)
from nethook.watching.losses.kept import Kept

Shape = tuple[int, ...]

LARGE: Final = 1 << 22
"""Elements of a prediction from which on a target that nobody has kept is not computed."""

REDUCTIONS: Final = ("none", "mean", "sum")
"""torch's own numbers for what a loss function does with the losses of its elements."""

FLOORED: Final = frozenset(
    {"cross_entropy", "nll", "mse", "l1", "smooth_l1", "huber", "bce", "bce_with_logits", "kl_div",
     "ctc", "multi_margin", "multilabel_margin", "soft_margin", "hinge", "norm", "triplet_margin",
     "margin_ranking", "cosine_embedding", "hinge_embedding", "rmse"}
)  # fmt: skip
"""Kinds that cannot be negative: with a negative factor such a loss is driven upwards."""

# What the tensor is that a loss function was given.
LOGITS, LOG_PROBABILITIES, PROBABILITIES, VALUES = "logits", "log_probs", "probs", "values"


@dataclass
class Operands:
    """The tensors that went into a loss, as far as they can be had, and their shapes."""

    prediction: torch.Tensor | None = None  # as the loss's first node has it
    target: torch.Tensor | None = None
    space: str = VALUES  # what `prediction` is
    given: torch.Tensor | None = None  # what the loss function was given, where that is another one
    classes: int | None = None  # the dimension of `prediction` that counts classes
    ignore: int | None = None  # the class number that is left out
    prediction_shape: Shape | None = None  # before broadcasting
    target_shape: Shape | None = None
    result_shape: Shape | None = None  # of the losses of the elements


@dataclass
class Made:
    """How one term of a loss was made."""

    kind: str
    reduction: str | None = None
    by_hand: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def made_of(term: Term) -> Made:
    """The kind of a term and its settings, from its nodes alone.

    The root of a mean of squares is no mean: what a constant answer scores is another number.
    """
    made = _made_of(term)
    if made.kind == "mse" and any(name_of(node) == "Sqrt" for node in term.passed):
        made.kind = "rmse"
    return made


def _made_of(term: Term) -> Made:
    node = term.node
    name = name_of(node)
    if name in LOSS_NODES:
        return _of_function(term, name)
    if term.mark is not None and not term.behind:
        return Made("linear", _reduction(term))  # a mean or sum of the output, as critics have
    if is_leaf(node):
        return Made("penalty", _reduction(term), by_hand=True)
    below = straight_behind(node, 1)
    squared = name == "Pow" and option(node, "exponent") == 2
    if squared or _is_square(node):
        kind = "mse" if _is_difference(node) else "squares"
        return Made(_or_penalty(term, kind), _reduction(term), by_hand=True)
    if name == "Abs" and _is_difference(node):
        # `l1_loss` is made of these too.
        return Made("l1", _reduction(term))
    if name == "LogSoftmax" and any(factor.tensor for factor in term.factors):
        kind = "kl_div" if _from_constant(term) else "cross_entropy"
        return Made(kind, _soft_reduction(term), options={"target": "probabilities"})
    if name == "Softmax" and _is_divergence(term):
        return Made("kl_div", _soft_reduction(term), options={"target": "probabilities"})
    if name in {"Norm", "LinalgVectorNorm"}:
        return Made(_or_penalty(term, "norm"), _reduction(term), by_hand=True)
    if name in {"ClampMin", "Relu", "Clamp"} and below and name_of(below[0]) in {"Add", "Sub"}:
        return Made("hinge", _reduction(term))
    return Made(_or_penalty(term, "other"), _reduction(term), by_hand=True)


def _of_function(term: Term, name: str) -> Made:
    node = term.node
    kind = LOSS_NODES[name]
    reduction = option(node, "reduction")
    inner = REDUCTIONS[reduction] if isinstance(reduction, int) and reduction < 3 else None
    if inner in {None, "none"}:
        inner = _reduction(term)
    options: dict[str, Any] = {}
    if kind == "nll":
        child = next((into for into, _ in node.next_functions if into is not None), None)
        own = term.behind[0] if term.behind else None
        # A LogSoftmax that the model ends in is the model's; any other is that of cross_entropy.
        of_model = child is own and len(term.behind) == 1
        if child is not None and name_of(child) == "LogSoftmax" and not of_model:
            kind = "cross_entropy"
        ignored = option(node, "ignore_index")
        if isinstance(ignored, int):
            options["ignore_index"] = signed(ignored)
    for setting in ("beta", "delta", "margin", "p", "blank", "zero_infinity"):
        value = option(node, setting)
        if isinstance(value, bool | int | float):
            options[setting] = value
    for setting in ("weight", "pos_weight"):
        if raw_saved_by(node, setting) is not None and saved(node, setting) is not None:
            options[setting] = True
    return Made(kind, inner, options=options)


def _reduction(term: Term) -> str | None:
    reductions = term.reductions
    if not reductions:
        return None
    return "mean" if "mean" in reductions else "sum"


def _soft_reduction(term: Term) -> str | None:
    """What cross_entropy and kl_div do with probabilities; their own factors are taken out.

    Both are a negative sum of products, and a mean over samples is a division by their number.
    """
    reduction = _reduction(term)
    factors = [Factor(-1.0), *term.factors]
    shape = shape_of(term.node)
    if reduction == "sum" and shape:
        dim = option(term.node, "dim")
        classes = shape[signed(dim) % len(shape)] if isinstance(dim, int) else 1
        for samples in (shape[0], math.prod(shape) // max(classes, 1)):
            for index, factor in enumerate(factors):
                if samples > 1 and factor.by is not None and factor.by * samples == 1.0:
                    del factors[index]
                    term.factors = tuple(factors)
                    return "mean"
    term.factors = tuple(factors)
    return reduction


def _or_penalty(term: Term, kind: str) -> str:
    """A term that leads to parameters and to no output of a model is a penalty on them."""
    if term.mark is not None:
        return kind
    inputs = [into for into, _ in term.node.next_functions if into is not None]
    return "penalty" if inputs and all(is_leaf(into) for into in inputs) else kind


def _is_square(node: Node) -> bool:
    edges = node.next_functions
    return (
        name_of(node) == "Mul"
        and len(edges) == 2
        and edges[0][0] is not None
        and edges[0][0] is edges[1][0]
    )


def _is_difference(node: Node) -> bool:
    into = node.next_functions[0][0]
    return into is not None and name_of(into) == "Sub"


def _from_constant(term: Term) -> bool:
    """Whether the term was taken from a constant: the entropy of the targets, as in kl_div."""
    return any(name_of(node) == "Sub" and node.next_functions[0][0] is None for node in term.passed)


def _is_divergence(term: Term) -> bool:
    """Whether a product with the targets was taken from a constant, one by one: kl_div's own way.

    A score that is one less the sum of such products has the sum in between.
    """
    names = [name_of(node) for node in term.passed]
    at = next((place for place, name in enumerate(names) if name == "Mul"
               and _is_product(term.passed[place])), 0)  # fmt: skip
    before = term.passed[at - 1] if at else None
    return before is not None and name_of(before) == "Sub" and before.next_functions[0][0] is None


def _is_product(node: Node) -> bool:
    factor = factor_of(node)
    return factor is not None and factor.tensor


# -- the tensors ----------------------------------------------------------------------------------


def operands_of(term: Term, made: Made, kept: Kept | None = None) -> Operands:
    """Prediction and target of a term, where its nodes have kept them.

    Those of a difference that was squared by hand are known where the model's output is kept.
    """
    node = term.node
    if made.kind in {"cross_entropy", "nll"} and name_of(node) in LOSS_NODES:
        return _class_operands(term, made)
    if name_of(node) == "LogSoftmax" or (made.kind == "kl_div" and name_of(node) == "Softmax"):
        return _soft_operands(term)
    if made.kind == "ctc":
        operands = Operands(saved(node, "log_probs"), saved(node, "targets"), LOG_PROBABILITIES)
        _with_shapes(operands)
        operands.target = _without_padding(operands.target, option(node, "target_lengths"))
        return operands
    if name_of(node) in LOSS_NODES:
        space = {"bce": PROBABILITIES, "bce_with_logits": LOGITS}.get(made.kind, VALUES)
        if made.kind.startswith("multi"):
            space = LOGITS
        operands = Operands(saved(node, "self"), saved(node, "target"), space)
        if made.kind == "multi_margin":
            operands.classes = 1
        return _with_shapes(operands, node)
    return _difference(node, kept)


@unrecorded
def _without_padding(targets: torch.Tensor | None, lengths: Any) -> torch.Tensor | None:
    """The targets of a CTC loss that count: what lies behind the end of a sequence is anything."""
    if targets is None or targets.dim() != 2 or not targets.is_cpu or is_shared(targets):
        return targets
    if not isinstance(lengths, tuple) or len(lengths) != len(targets) or not any(lengths):
        return targets
    places = torch.arange(targets.shape[1])
    return targets[places < torch.tensor(lengths)[:, None]]


def _class_operands(term: Term, made: Made) -> Operands:
    node = term.node
    operands = Operands(saved(node, "self"), saved(node, "target"), LOG_PROBABILITIES)
    operands.ignore = made.options.get("ignore_index")
    if operands.prediction is not None:
        operands.classes = 1 if operands.prediction.dim() > 1 else 0
    if made.kind == "cross_entropy":
        operands.given = _given_to(node.next_functions[0][0])
    elif term.behind:
        operands.given = saved(node, "self")
    return _with_shapes(operands)


def _given_to(log_softmax: Node) -> torch.Tensor | None:
    """What went into a LogSoftmax, if the operation before it has kept its result."""
    for before in straight_behind(log_softmax, 3):
        result = saved(before, "result")
        if result is not None:
            return result
        if name_of(before) not in {"View", "UnsafeView", "ReshapeAlias", "ToCopy", "Transpose"}:
            return None
    return None


def _soft_operands(term: Term) -> Operands:
    logarithms = name_of(term.node) == "LogSoftmax"
    space = LOG_PROBABILITIES if logarithms else PROBABILITIES
    operands = Operands(saved(term.node, "result"), None, space)
    dim = option(term.node, "dim")
    if operands.prediction is not None and isinstance(dim, int):
        operands.classes = signed(dim) % operands.prediction.dim()
    for node in reversed(term.passed):
        if name_of(node) == "Mul":
            edge = 0 if node.next_functions[0][0] is not None else 1
            operands.target = saved(node, "other" if edge == 0 else "self")
            break
    operands.given = _given_to(term.node) if logarithms else operands.prediction
    return _with_shapes(operands)


def _with_shapes(operands: Operands, node: Node | None = None) -> Operands:
    if operands.prediction is not None:
        operands.prediction_shape = unbroadcast(operands.prediction)
        operands.result_shape = tuple(operands.prediction.shape)
    if operands.target is not None:
        operands.target_shape = unbroadcast(operands.target)
    into = node.next_functions[0][0] if node is not None else None
    if into is not None and name_of(into) == "Expand":
        sizes = option(into, "self_sym_sizes")
        operands.prediction_shape = tuple(int(size) for size in sizes) if sizes else None
    return operands


def unbroadcast(tensor: torch.Tensor) -> Shape:
    """The shape that a tensor had before it was expanded: an expanded dimension has stride 0."""
    if tensor.layout is not torch.strided:
        return tuple(tensor.shape)
    sizes = [
        1 if stride == 0 and size > 1 else size
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    ]
    expanded = any(
        stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    while expanded and sizes and sizes[0] == 1:
        del sizes[0]
    return tuple(sizes)


def _difference(node: Node, kept: Kept | None) -> Operands:
    """What was subtracted, before a square or the like: its tensors are not kept by autograd."""
    operands = Operands()
    into, _ = node.next_functions[0] if node.next_functions else (None, 0)
    if into is None or name_of(into) != "Sub":
        return operands
    operands.result_shape = shape_of(into)
    for index, (edge, output) in enumerate(into.next_functions):
        if edge is not None and not is_leaf(edge):
            sizes = option(edge, "self_sym_sizes") if name_of(edge) == "Expand" else None
            operands.prediction_shape = (
                tuple(int(size) for size in sizes) if sizes else shape_of(edge, output)
            )
            other = into.next_functions[1 - index][0]
            difference = saved(node, "self")
            if kept is not None and other is None and difference is not None:
                operands.prediction = kept.output(edge, output)
                _add_target(operands, difference, 1.0 if index else -1.0)
            break
    return operands


@unrecorded
def _add_target(operands: Operands, difference: torch.Tensor, sign: float) -> None:
    """The target is the prediction less the difference: as far as rounding lets it be known."""
    prediction = operands.prediction
    if prediction is None or difference.numel() > LARGE:
        return
    if is_shared(prediction) or prediction.is_complex():
        return
    if prediction.shape != difference.shape and not _makes_a_table(prediction, difference):
        return
    target = prediction + sign * difference
    whole = target.round()
    slack = 1e-6 * (1.0 + prediction.abs() + difference.abs())
    target = torch.where((target - whole).abs() <= slack, whole, target)
    operands.target_shape = operands.prediction_shape
    if prediction.shape != difference.shape:
        target = _narrowed(target, 4 * slack)
        operands.target_shape = tuple(target.shape)
    operands.target = target


def _makes_a_table(prediction: torch.Tensor, difference: torch.Tensor) -> bool:
    """Whether a column or a row has become a table, as by a target that is the other of the two."""
    return (
        difference.dim() == 2
        and prediction.numel() == max(prediction.shape, default=0) > 1
        and difference.numel() > prediction.numel()
    )


def _narrowed(table: torch.Tensor, slack: torch.Tensor) -> torch.Tensor:
    """A table that is one row again and again as that row, one that is one column as that."""
    if bool(((table - table[:1]).abs() <= slack).all()):
        return table[0]
    return table[:, :1] if bool(((table - table[:, :1]).abs() <= slack).all()) else table
