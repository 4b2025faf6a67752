"""The record of a loss from the call of torch's function for it: where there is no graph."""

from __future__ import annotations

from typing import Any, Final

import torch

from nethook.watching.losses.kinds import (
    FLOORED,
    LOG_PROBABILITIES,
    LOGITS,
    PROBABILITIES,
    REDUCTIONS,
    VALUES,
    Operands,
    unbroadcast,
)

# What the functions that `torch.nn.functional` calls take after prediction and target, in order.
_REST: Final = {
    "cross_entropy": ("weight", "reduction", "ignore_index", "label_smoothing"),
    "nll": ("weight", "reduction", "ignore_index"),
    "mse": ("reduction",),
    "l1": ("reduction",),
    "smooth_l1": ("reduction", "beta"),
    "huber": ("reduction", "delta"),
    "bce": ("weight", "reduction"),
    "bce_with_logits": ("weight", "pos_weight", "reduction"),
    "multi_margin": ("p", "margin", "weight", "reduction"),
    "multilabel_margin": ("reduction",),
    "soft_margin": ("reduction",),
    "kl_div": ("reduction", "log_target"),
    "ctc": ("input_lengths", "target_lengths", "blank", "reduction", "zero_infinity"),
    "poisson_nll": ("log_input", "full", "eps", "reduction"),
    "hinge_embedding": ("margin", "reduction"),
}
# Those that compare several predictions have no single one to be held against a target.
_SEVERAL: Final = frozenset({"cosine_embedding", "margin_ranking", "triplet_margin"})

_SPACES: Final = {
    "cross_entropy": LOGITS,
    "nll": LOG_PROBABILITIES,
    "kl_div": LOG_PROBABILITIES,
    "ctc": LOG_PROBABILITIES,
    "bce": PROBABILITIES,
    "bce_with_logits": LOGITS,
    "multi_margin": LOGITS,
    "multilabel_margin": LOGITS,
}
_OF_CLASSES: Final = frozenset({"cross_entropy", "nll", "kl_div", "multi_margin"})
_KEPT: Final = ("ignore_index", "label_smoothing", "beta", "delta", "p", "margin", "blank")


def operands_of_call(
    kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], Operands]:
    """The record without its numbers, and the tensors of the call."""
    options = dict(zip(_REST.get(kind, ()), args[2:], strict=False)) | kwargs
    reduction = options.get("reduction", 1)
    data: dict[str, Any] = {
        "kind": kind,
        "chain": [],
        "by_hand": False,
        "reduction": REDUCTIONS[reduction] if reduction in {0, 1, 2} else None,
        "factor": None,
        "floored": kind in FLOORED,
    }
    kept = {name: options[name] for name in _KEPT if isinstance(options.get(name), int | float)}
    kept |= {name: True for name in ("weight", "pos_weight") if options.get(name) is not None}
    data["options"] = kept
    return data, _operands(kind, args, kept)


def _operands(kind: str, args: tuple[Any, ...], options: dict[str, Any]) -> Operands:
    tensors = [arg.detach() for arg in args[:2] if isinstance(arg, torch.Tensor)]
    operands = Operands(space=_SPACES.get(kind, VALUES))
    if not tensors:
        return operands
    operands.prediction = tensors[0]
    if len(tensors) == 2 and kind not in _SEVERAL:
        operands.target = tensors[1]
        operands.target_shape = unbroadcast(tensors[1])
    operands.prediction_shape = unbroadcast(tensors[0])
    operands.result_shape = tuple(tensors[0].shape)
    if kind in _OF_CLASSES:
        operands.classes = 1 if tensors[0].dim() > 1 else 0
        operands.ignore = options.get("ignore_index")
    if kind == "cross_entropy":
        operands.given = tensors[0]
    return operands
