"""A prediction sees what it is to predict.

Cause: a causal mask is missing or of the wrong half, a convolution pads on both sides, an RNN runs
both ways.
Evidence: the target of a step is what the input has later. On a copy that token or value was
changed, the target kept, and the prediction moved.
Fix: mask what comes later.
Silent: where the target is no later part of an input (autoencoders, masked language models), where
the positions that see ahead are not scored (a prefix), and where another input, a decoder's own,
is not seen ahead. Where an encoder may read the whole sequence on purpose, it is a question
(`info`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, meant, number

EXAMINED = "no look ahead"


class Thresholds(NamedTuple):
    """What may be changed."""

    tried: float = 2  # positions that must have been tried


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None or number(result, "tried", 0) < limit.tried:
        return
    shift, reach = number(result, "shift", 1), number(result, "reach", -1)
    steps = "step" if shift == 1 else "steps"
    seen = "all of the sequence" if reach < 0 else f"up to {reach:.0f} steps ahead"
    yield finding_of(
        history,
        result,
        "sees-the-future",
        f"the target of a position is the input {shift:.0f} {steps} later, and the prediction "
        f"there moves when that very input is changed: it sees {seen}.{meant(result)}",
        "Give attention a causal mask (is_causal=True, or -inf above the diagonal), pad "
        "convolutions on the left only, or use an RNN of one direction.",
        {"positions tried": Evidence(number(result, "tried", 0), limit.tried)},
    )


RULE = Rule(
    "sees-the-future",
    Cause.LOSS,
    look,
    reads=(
        "examined.no look ahead",
        "examined.no look ahead.lines",
        "examined.no look ahead.reach",
        "examined.no look ahead.shift",
        "examined.no look ahead.tried",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
