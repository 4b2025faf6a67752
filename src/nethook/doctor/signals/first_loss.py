"""The first loss of a run, against what a fresh network usually has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from nethook.doctor.history import History

FIRST_LOSS_READS: Final = (
    "loss.kind",
    "loss.options",
    "loss.prediction",
    "loss.target",
    "loss.value",
)
"""The fields that `first_loss` reads."""


def first_loss(history: History) -> tuple[float, float] | None:
    """The value of the first loss and the usual one; None where that is not known."""
    for record in history.records("train")[:1]:
        value = record.fact("value")
        prediction, target = record.fact("prediction") or {}, record.fact("target") or {}
        usual = usual_first_loss(str(record.fact("kind")), prediction, target)
        weighted = (record.fact("options") or {}).get("weight")
        if usual and value is not None and math.isfinite(value) and not weighted:
            return float(value), usual
    return None


def usual_first_loss(
    kind: str, prediction: Mapping[str, Any], target: Mapping[str, Any]
) -> float | None:
    """What a network scores that knows nothing yet, and whose answers are near zero.

    Cross entropy: the logarithm of the number of classes. Binary: that of two. Squared error: the
    mean square of the targets.
    """
    shape = prediction.get("shape") or []
    if kind in ("cross_entropy", "nll") and len(shape) >= 2 and shape[1] > 1:
        return math.log(shape[1])
    if kind in ("bce", "bce_with_logits"):
        return math.log(2)
    mean, std = target.get("mean"), target.get("std")
    if kind == "mse" and mean is not None and std is not None:
        return float(mean) ** 2 + float(std) ** 2 or None
    return None
