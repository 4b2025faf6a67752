"""The last activation cannot reach the targets.

Cause: a sigmoid, tanh or rectifier after the last layer of a regression.
Evidence: the activation right behind the loss, and targets that lie outside of its range; where
they are not known, an error that is larger than the range.
Fix: leave the last activation out, or scale the targets into its range.
Silent: where targets lie within the range, up to a tenth of their spread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, LossFacts
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule


class Thresholds(NamedTuple):
    """What may be changed."""

    outside: float = 0.1  # how far outside, by the spread of the targets
    records: float = 2  # losses that were made so


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    records = history.records("train")
    told = [(record, ranges) for record in records if (ranges := _out_of_reach(record, limit))]
    if len(told) < min(limit.records, len(records)) or not told:
        return
    first, (name, low, high, least, greatest) = told[0]
    where = source_line(first.fact("source"))
    kept = not math.isnan(least)
    targets = (
        f"the targets{where} between {least:.3g} and {greatest:.3g}"
        if kept
        else f"the targets{where} are {greatest:.3g} away from it on average"
    )
    yield Finding(
        "output-range",
        "warning",
        f"the output ends in {name} and lies between {low:g} and {high:g}, and {targets}: some "
        "cannot be reached.",
        f"Leave the {name} after the last layer out, or scale the targets into its range.",
        first_step=first.step,
        last_step=told[-1][0].step,
        evidence={"least target": Evidence(least, low), "greatest target": Evidence(greatest, high)}
        if kept
        else {"error": Evidence(greatest, high - low)},
        lines=file_and_line(first.fact("source")),
    )


_REGRESSION = ("mse", "rmse", "l1", "smooth_l1", "huber")
_BOUNDS = {
    "Sigmoid": (0.0, 1.0),
    "Tanh": (-1.0, 1.0),
    "Relu": (0.0, math.inf),
    "Softmax": (0.0, 1.0),
    "Hardtanh": (-1.0, 1.0),
    "Hardsigmoid": (0.0, 1.0),
    "Softplus": (0.0, math.inf),
    "Exp": (0.0, math.inf),
    "LogSoftmax": (-math.inf, 0.0),
    "LogSigmoid": (-math.inf, 0.0),
}
_MOVES = (
    "View", "Reshape", "Squeeze", "Unsqueeze", "T", "Transpose", "Permute", "Expand", "Select",
    "Slice", "UnsafeView", "ReshapeAlias", "Clone", "Alias", "ToCopy",
)  # fmt: skip


def _out_of_reach(
    record: LossFacts, limit: Thresholds
) -> tuple[str, float, float, float, float] | None:
    """The last activation, its range, and that of the targets, where they do not fit."""
    target = record.fact("target") or {}
    least, greatest, std = target.get("min"), target.get("max"), target.get("std")
    if record.fact("kind") not in _REGRESSION:
        return None
    chain = [*record.fact("chain", [])[1:], *record.fact("inside", [])]
    last = next((str(node) for node in chain if node not in (*_MOVES, *_OWN)), "")
    if last not in _BOUNDS:
        return None
    low, high = _BOUNDS[last]
    if least is None or greatest is None:
        return _too_far(record, last, low, high)
    prediction = record.fact("prediction") or {}
    least_given, greatest_given = prediction.get("min", low), prediction.get("max", high)
    if least_given < low - 1e-3 or greatest_given > high + 1e-3:
        return None  # another function of the same node: relu6 is a hardtanh to torch
    slack = limit.outside * (std or 0.0)
    if least >= low - slack and greatest <= high + slack:
        return None
    return last.lower(), low, high, float(least), float(greatest)


def _too_far(
    record: LossFacts, last: str, low: float, high: float
) -> tuple[str, float, float, float, float] | None:
    """Where the targets were not kept: an error beyond the whole range is out of reach."""
    value = record.fact("value")
    if record.fact("reduction") != "mean" or record.fact("factor") != 1.0 or value is None:
        return None
    error = math.sqrt(abs(value)) if record.fact("kind") == "mse" else float(value)
    return (last.lower(), low, high, math.nan, error) if error > 1.5 * (high - low) else None


_OWN = ("MseLoss", "SmoothL1Loss", "HuberLoss", "Mean", "Sum", "Pow", "Sub", "Abs", "Mul", "Div")


RULE = Rule(
    "output-range",
    Cause.LOSS,
    look,
    reads=(
        "loss.chain",
        "loss.factor",
        "loss.inside",
        "loss.kind",
        "loss.prediction",
        "loss.reduction",
        "loss.source",
        "loss.target",
        "loss.value",
    ),
    defaults=Thresholds(),
)
