"""What the graph of a loss says: what made it infinite, and how to compute it again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch.nn import functional as F

from nethook.addresses.paths import show_path
from nethook.torch_private import reader_of_saved, saved_by
from nethook.watching.flight.ranges import Range, is_finite, range_of
from nethook.watching.flight.reasons import forward_reason
from nethook.watching.losses.graph import (
    LOSS_NODES,
    Node,
    Term,
    find_output,
    mark_of,
    name_of,
    option,
    saved,
    terms_of,
)
from nethook.watching.losses.kinds import (
    LOG_PROBABILITIES,
    REDUCTIONS,
    made_of,
    operands_of,
)

_FAR: Final = 512


@dataclass
class LossCause:
    """What is known of a loss that is not finite."""

    operation: str = ""  # the node that made it so, where that can be told
    reason: str = ""
    ranges: list[Range] = field(default_factory=list)
    prediction_finite: bool | None = None
    target_finite: bool | None = None
    chain: list[str] = field(default_factory=list)

    @property
    def only_scaled(self) -> bool:
        """Whether nothing is wrong but that a factor, a loss scaler's, took it beyond its type.

        The gradients are multiplied by the same factor, but not by the loss: they may be fine.
        """
        finite = self.prediction_finite is not False and self.target_finite is not False
        return self.chain[:1] == ["Mul"] and finite and not self.operation


def cause_of(root: Node) -> LossCause:
    """Look through the graph between a loss and the models' outputs for what made it infinite."""
    cause = LossCause()
    for term in terms_of(root):
        find_output(term)
        operands = operands_of(term, made_of(term))
        for name in ("prediction", "target"):
            tensor = getattr(operands, name)
            finite = None if tensor is None else is_finite(tensor)
            if name == "prediction" and finite is False and operands.space == LOG_PROBABILITIES:
                # A log of probabilities may be −Inf while what it was made from is finite.
                value_range = range_of(tensor)
                finite = False if value_range is not None and value_range.nan else None
            if finite is not None and getattr(cause, f"{name}_finite") is not False:
                setattr(cause, f"{name}_finite", finite)
        cause.chain = cause.chain or [
            name_of(node) for node in (*term.passed, term.node, *term.behind)
        ]
        _output_finite(term, cause)
    _first_trouble(root, cause)
    return cause


def _output_finite(term: Term, cause: LossCause) -> None:
    """Whether the output of the model was finite, where the node behind it has kept it."""
    before = term.behind[-2] if len(term.behind) > 1 else term.node
    kept = saved(before, "self") if name_of(before) not in LOSS_NODES else None
    if kept is not None and cause.prediction_finite is None:
        cause.prediction_finite = is_finite(kept)


def _first_trouble(root: Node, cause: LossCause) -> None:
    """The operation nearest to the output whose operands were finite, and its result was not."""
    waiting, seen = deque([root]), {root}
    while waiting and len(seen) < _FAR:
        node = waiting.popleft()
        trouble = _trouble(node)
        if trouble is not None:
            cause.operation, (cause.reason, cause.ranges) = name_of(node), trouble
        if mark_of(node) is None:
            for into, _ in node.next_functions:
                if into is not None and into not in seen:
                    seen.add(into)
                    waiting.append(into)


def _trouble(node: Node) -> tuple[str, list[Range]] | None:
    """The reason why a node's result was not finite, from what it has kept of its operands."""
    name = name_of(node)
    operands: list[Any] = []
    if name in {"Log", "Log2", "Log10", "Log1P", "Rsqrt", "Acos", "Asin"}:
        operands = [saved(node, "self")]
    elif name == "Div":
        operands = [saved(node, "self"), saved(node, "other")]
    elif name == "Pow":
        operands = [saved(node, "self"), option(node, "exponent")]
    elif name in {"NllLoss", "NllLoss2D"}:
        operands = [_picked(saved(node, "self"), saved(node, "target"))]
    elif name in {"Exp", "Sqrt", "Reciprocal", "Softmax"}:
        result = saved(node, "result")
        if result is None or is_finite(result):
            return None
        value_range = range_of(result)
        reasons = {"Exp": "exp overflows", "Sqrt": "root of a negative number"}
        said = reasons.get(name, "division by 0" if name == "Reciprocal" else "NaN in a softmax")
        return said, [] if value_range is None else [value_range]
    tensors = [operand for operand in operands if isinstance(operand, torch.Tensor)]
    if not tensors or not all(is_finite(tensor) for tensor in tensors if name != "NllLoss"):
        return None
    said = forward_reason(_RULE.get(name, name), operands, None)
    if said == "NaN from finite operands" or said.startswith("it was given"):
        return None
    ranges = [value_range for tensor in tensors if (value_range := range_of(tensor)) is not None]
    return said, ranges


_RULE: Final = {"NllLoss": "nll_loss", "NllLoss2D": "nll_loss", "Log1P": "log1p"}


def _picked(scores: torch.Tensor | None, target: torch.Tensor | None) -> torch.Tensor | None:
    """The log-probabilities of the wanted classes; the others do not enter a likelihood."""
    if scores is None or target is None or scores.dim() < 2 or target.dim() != scores.dim() - 1:
        return scores
    inside = target.clamp(0, scores.shape[1] - 1)
    return scores.gather(1, inside.unsqueeze(1)).squeeze(1)


# -- computing it again ----------------------------------------------------------------------------


_target_of: Final = reader_of_saved("target")


class LossKeeper:
    """Keeps what is needed to compute a loss again, each step: what is known is not asked again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[type, type, int], dict[str, Any]] = {}
        self._plain: dict[type, dict[str, Any] | None] = {}  # of `_kept`, by the last node alone

    def keep_plainly(
        self, roots: Sequence[torch.Tensor]
    ) -> tuple[dict[str, Any], torch.Tensor | None]:
        """What `keep` gives, and the target, which is not in it where the last node tells all."""
        node: Any = roots[0].grad_fn
        kept = self._plain.get(type(node))
        if kept is None:
            return self.keep(roots), None
        try:
            target: torch.Tensor = _target_of(node)
        except (AttributeError, RuntimeError):
            return kept, None  # it was written since
        return kept, target.detach() if target.requires_grad else target

    def _note_plain(self, node: type) -> None:
        """Losses with this last node are all alike but for their targets, or not."""
        of_node = [kept for key, kept in self._kept.items() if key[0] is node]
        alike = len(of_node) == 1 and of_node[0]["weight"] is None
        self._plain[node] = of_node[0] if alike else None

    def keep(self, roots: Sequence[torch.Tensor]) -> dict[str, Any]:
        """See `keep_loss`."""
        root: Any = roots[0].grad_fn if len(roots) == 1 else None
        if root is None:
            return {}
        # With class weights or behind a factor there is more to be read than a target.
        if name_of(root) not in _FUNCTIONS:
            return keep_loss(roots)
        before = root.next_functions[0][0]
        if before is None:
            return keep_loss(roots)
        key = (type(root), type(before), saved_by(root, "reduction"))
        kept = self._kept.get(key)
        if kept is None or kept["weight"] is not None:
            fresh = keep_loss(roots)
            if fresh:
                self._kept[key] = fresh | {"target": None}
                self._note_plain(type(root))
            return fresh
        target = saved(root, "target")
        return {} if target is None else kept | {"target": target}


def keep_loss(roots: Sequence[torch.Tensor]) -> dict[str, Any]:
    """What is needed to compute a loss again from the model's output; empty where that is unknown.

    Known are torch's loss functions of an output as it is. The target is held by reference, for as
    long as the batch is.
    """
    root = roots[0].grad_fn if roots else None
    node, factor = root, 1.0
    for _ in range(4):
        if node is None or name_of(node) in LOSS_NODES:
            break
        name = name_of(node)
        edges = [into for into, _ in node.next_functions if into is not None]
        if len(edges) != 1 or name not in {"Mul", "Div"}:
            return {}
        other = saved(node, "other")
        if other is None or other.dim() or other.device.type != "cpu":
            return {}
        factor = factor * other.item() if name == "Mul" else factor / other.item()
        node = edges[0]
    if node is None or name_of(node) not in _FUNCTIONS:
        return {}
    function = _FUNCTIONS[name_of(node)]
    before = node.next_functions[0][0]
    if function == "nll_loss" and before is not None and mark_of(before) is None:
        if name_of(before) != "LogSoftmax":
            return {}
        function, before = "cross_entropy", before.next_functions[0][0]
    mark = None if before is None else mark_of(before)
    target = saved(node, "target")
    reduction = option(node, "reduction")
    if mark is None or target is None or reduction not in {0, 1, 2}:
        return {}
    return {
        "function": function,
        "target": target,
        "reduction": REDUCTIONS[reduction],
        "factor": factor,
        "path": show_path(mark.path),
        "weight": saved(node, "weight"),
    }


_FUNCTIONS: Final = {
    "NllLoss": "nll_loss",
    "NllLoss2D": "nll_loss",
    "MseLoss": "mse_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss",
    "BinaryCrossEntropy": "binary_cross_entropy",
    "BinaryCrossEntropyWithLogits": "binary_cross_entropy_with_logits",
    "SoftMarginLoss": "soft_margin_loss",
    "MultiMarginLoss": "multi_margin_loss",
}


def compute_again(kept: dict[str, Any], output: torch.Tensor) -> torch.Tensor:
    """The loss that `keep_loss` kept, of another output."""
    name = kept.get("function")
    if name not in {*_FUNCTIONS.values(), "cross_entropy"}:
        raise ValueError(f"not a loss function: {name!r}")
    options: dict[str, Any] = {"reduction": kept.get("reduction", "mean")}
    if isinstance(kept.get("weight"), torch.Tensor):
        options["weight"] = kept["weight"]
    loss: torch.Tensor = getattr(F, name)(output, kept["target"], **options)
    return loss.sum() * float(kept.get("factor", 1.0))
