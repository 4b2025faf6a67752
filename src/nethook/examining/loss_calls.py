"""Calls of torch's loss functions: which kind, with which prediction, target and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import torch
from torch.nn import functional as F

KINDS: Final[dict[Callable[..., Any], str]] = {
    F.cross_entropy: "cross_entropy",
    F.nll_loss: "nll",
    F.mse_loss: "mse",
    F.l1_loss: "l1",
    F.smooth_l1_loss: "smooth_l1",
    F.huber_loss: "huber",
    F.binary_cross_entropy: "bce",
    F.binary_cross_entropy_with_logits: "bce_with_logits",
    F.kl_div: "kl_div",
    F.multi_margin_loss: "multi_margin",
    F.multilabel_margin_loss: "multilabel_margin",
    F.multilabel_soft_margin_loss: "multilabel_soft_margin",
    F.soft_margin_loss: "soft_margin",
    F.poisson_nll_loss: "poisson_nll",
    F.gaussian_nll_loss: "gaussian_nll",
    F.ctc_loss: "ctc",
    F.cosine_embedding_loss: "cosine_embedding",
    F.hinge_embedding_loss: "hinge_embedding",
    F.margin_ranking_loss: "margin_ranking",
    F.triplet_margin_loss: "triplet_margin",
    F.triplet_margin_with_distance_loss: "triplet_margin",
}
"""Functions of torch -> the kind of loss, as runs name it."""

BY_HAND: Final = "by hand"
"""A loss that the script has written itself: where its output meets its target."""

_PREDICTIONS: Final = ("input", "log_probs", "input1", "anchor")
_TARGETS: Final = ("target", "targets")


@dataclass(frozen=True, slots=True, eq=False)
class LossCall:
    """One call of a loss function, inside the model or after it.

    Attributes:
        kind: of `KINDS`, or `BY_HAND`.
        prediction: as it was given, detached unless the run was asked for gradients.
        target: the same; None where the kind has none.
        options: the other arguments that are plain data (`reduction`, `ignore_index`, …), and True
            for a tensor of weights that was given.
        inside_model: whether the model has called it.
        line: of the script, as `train.py:42`; "" where that is not known.
        op: its number among the operations of the passage; -1 inside the model.
    """

    kind: str
    prediction: torch.Tensor | None
    target: torch.Tensor | None
    options: Mapping[str, Any] = field(default_factory=dict)
    inside_model: bool = False
    line: str = ""
    op: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class LossArguments:
    """The arguments of a loss function, told apart. Values may be anything that stands for one."""

    kind: str
    prediction: Any
    target: Any
    options: Mapping[str, Any]


def is_loss(function: Callable[..., Any]) -> bool:
    """Whether a function is a loss function of torch."""
    try:
        return function in KINDS
    except TypeError:  # cannot be hashed
        return False


def arguments_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> LossArguments:
    """Which argument is what."""
    given = _signature(function).bind_partial(*args, **kwargs).arguments
    options = {
        name: value if isinstance(value, bool | int | float | str) else True
        for name, value in given.items()
        if name not in (*_PREDICTIONS, *_TARGETS, "input2", "positive", "negative")
        and value is not None
        and name not in ("size_average", "reduce")
    }
    return LossArguments(
        KINDS[function], _first(given, _PREDICTIONS), _first(given, _TARGETS), options
    )


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if name in given), None)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)
