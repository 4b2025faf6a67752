"""The record of a loss from the call of torch's function for it: where there is no graph."""

from __future__ import annotations

from collections.abc import Mapping
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


def samples_of_call(
    kind: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor
) -> tuple[torch.Tensor | float | None, bool]:
    """How many samples a loss is of, and whether it is their sum.

    Of classes, targets that are left out do not count, and others count as much as their class
    weighs: this is what torch's own mean is over.
    """
    options = dict(zip(_REST.get(kind, ()), args[2:], strict=False)) | kwargs
    if result.dim():  # its mean is what is followed
        return float(result.numel()), False
    summed = options.get("reduction", 1) == 2
    prediction = args[0]
    if not isinstance(prediction, torch.Tensor):
        return None, summed
    if kind == "ctc":
        return float(prediction.shape[1]) if prediction.dim() == 3 else 1.0, summed
    target = args[1] if len(args) > 1 else kwargs.get("target")
    # Counting the targets of a tensor that is spread over ranks would make ranks talk.
    if kind in ("cross_entropy", "nll") and type(target) is torch.Tensor:
        if target.is_floating_point():  # a probability for each class
            classes = prediction.shape[1 if prediction.dim() > 1 else 0]
            return float(target.numel() / max(classes, 1)), summed
        return _counted(target, options), summed
    return float(prediction.shape[0]) if prediction.dim() else 1.0, summed


def returned_loss(output: object) -> torch.Tensor | None:
    """The loss that a model returns with its output, as those of transformers do."""
    if output is None or isinstance(output, torch.Tensor):
        return None
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return loss if type(loss) is torch.Tensor and not loss.dim() else None


def _counted(target: torch.Tensor, options: dict[str, Any]) -> torch.Tensor | float:
    counts = target != options.get("ignore_index", -100)
    weight = options.get("weight")
    if isinstance(weight, torch.Tensor):
        total = (weight[target.clamp(0, len(weight) - 1)] * counts).sum()
    else:
        total = counts.sum()
    return float(total.item()) if total.is_cpu else total


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
