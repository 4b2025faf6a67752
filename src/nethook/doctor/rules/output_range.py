"""The last activation cannot reach the targets.

Cause: a sigmoid, tanh or rectifier after the last layer of a regression.
Evidence: the activation right behind the loss, and targets that lie outside of its range.
Fix: leave the last activation out, or scale the targets into its range.
Silent: where targets lie within the range, up to a tenth of their spread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, LossFacts
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.words import place


@dataclass(frozen=True)
class Thresholds:
    """What may be changed."""

    outside: float = 0.1  # how far outside, by the spread of the targets
    records: float = 2  # losses that were made so


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    records = history.records("train")
    told = [(each, found) for each in records if (found := _out_of_reach(each, limit))]
    if len(told) < min(limit.records, len(records)) or not told:
        return
    first, (name, low, high, least, greatest) = told[0]
    where = place(first.fact("source"))
    yield Finding(
        "output-range",
        "warning",
        f"the output ends in {name} and lies between {low:g} and {high:g}, and the targets{where} "
        f"between {least:.3g} and {greatest:.3g}: some cannot be reached.",
        f"Leave the {name} after the last layer out, or scale the targets into its range.",
        first_step=first.step,
        last_step=told[-1][0].step,
        evidence={
            "least target": Evidence(least, low),
            "greatest target": Evidence(greatest, high),
        },
    )


_REGRESSION = ("mse", "l1", "smooth_l1", "huber")
_BOUNDS = {
    "Sigmoid": (0.0, 1.0),
    "Tanh": (-1.0, 1.0),
    "Relu": (0.0, math.inf),
    "Softmax": (0.0, 1.0),
    "Hardtanh": (-1.0, 1.0),
    "Hardsigmoid": (0.0, 1.0),
    "Softplus": (0.0, math.inf),
}
_MOVES = ("View", "Reshape", "Squeeze", "Unsqueeze", "T", "Transpose", "Permute", "Expand")


def _out_of_reach(
    record: LossFacts, limit: Thresholds
) -> tuple[str, float, float, float, float] | None:
    """The last activation, its range, and that of the targets, where they do not fit."""
    target = record.fact("target") or {}
    least, greatest, std = target.get("min"), target.get("max"), target.get("std")
    if record.fact("kind") not in _REGRESSION or least is None or greatest is None:
        return None
    chain = [str(node) for node in record.fact("chain", [])[1:]]
    last = next((node for node in chain if node not in (*_MOVES, *_OWN)), "")
    if last not in _BOUNDS:
        return None
    low, high = _BOUNDS[last]
    slack = limit.outside * (std or 0.0)
    if least >= low - slack and greatest <= high + slack:
        return None
    return last.lower(), low, high, float(least), float(greatest)


_OWN = ("MseLoss", "SmoothL1Loss", "HuberLoss", "Mean", "Sum", "Pow", "Sub", "Abs", "Mul", "Div")


RULE = Rule(
    "output-range",
    Cause.LOSS,
    look,
    reads=(
        "loss.chain",
        "loss.kind",
        "loss.source",
        "loss.target",
    ),
    defaults=Thresholds(),
)
