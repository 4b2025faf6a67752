"""The target is not the next step but one after it.

Cause: the labels were shifted by the script or its collator, and again by the model or the loss.
Evidence: targets are the inputs two or more steps later, exactly; on a copy, no prediction moves
with anything after its own position.
Fix: shift once.
Silent: for models that see both ways, and where another prediction of the same model is of the next
step (several heads).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, number

EXAMINED = "what the target is"


class Thresholds(NamedTuple):
    """What may be changed."""

    ahead: float = 2  # steps from the last thing that a prediction sees to its target


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED, what="shifted")
    if result is None or result.outcome != "found":
        return
    ahead = number(result, "ahead", 0)
    if not ahead >= limit.ahead:
        return
    yield finding_of(
        history,
        result,
        "target-shifted",
        f"each prediction is compared with what comes {ahead:.0f} steps after the last thing that "
        "it sees: the step in between is never learnt.",
        "Shift once: give a model that shifts by itself labels=input_ids, or compare "
        "logits[:, :-1] with tokens[:, 1:] and shift nothing else.",
        {"steps ahead": Evidence(ahead, limit.ahead)},
    )


RULE = Rule(
    "target-shifted",
    Cause.LOSS,
    look,
    reads=(
        "examined.what the target is",
        "examined.what the target is.ahead",
        "examined.what the target is.lines",
        "examined.what the target is.what",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
