"""The target is among what the model is given: copying it is enough.

Cause: labels that were not shifted, a window that ends one step too late, a column of the table
that is the answer; a masked language model that is given its tokens without the mask.
Evidence: targets are the inputs of their own position, exactly, and the model looks back only; or a
target of one number stands at the same place of the input in every sample. Of masked tokens: every
prediction that is scored moves with the very token that is its target.
Fix: shift the labels, end the window earlier, leave the column out.
Silent: for autoencoders, which see their whole input and write it again, and for models that see
only what comes before. Where remembering may be the task, it is a question (`info`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, meant, number

EXAMINED = "what the target is"


class Thresholds(NamedTuple):
    """What may be changed."""

    samples: float = 8  # that must have their target in their input


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED, what="input")
    if result is None:
        return
    places = number(result, "places", 0)
    samples = number(result, "samples", limit.samples)
    if samples < limit.samples:
        return
    if places > 0:
        said = (
            f"the target of every sample stands in its own input, at place "
            f"{number(result, 'place', 0):.0f} of {places:.0f}"
        )
        fix = (
            "End the window before the value to predict, and leave the target out of the features."
        )
    elif result.fact("masked"):
        said = (
            "the tokens to predict are chosen among others, and every prediction moves with the "
            "very token that is its target: nothing was masked, and it learns to copy"
        )
        fix = "Give the model the masked copy of the tokens, and the loss the original ones."
    else:
        said = (
            "the target of each position is the input at that position, and the model, which looks "
            "back only, is given it: it learns to copy"
        )
        fix = "Compare logits[:, :-1] with tokens[:, 1:]: the target is the next token."
    evidence = {"samples": Evidence(samples, limit.samples)}
    message = f"{said}.{meant(result)}"
    yield finding_of(history, result, "target-is-input", message, fix, evidence)


RULE = Rule(
    "target-is-input",
    Cause.LOSS,
    look,
    reads=(
        "examined.what the target is",
        "examined.what the target is.lines",
        "examined.what the target is.masked",
        "examined.what the target is.place",
        "examined.what the target is.places",
        "examined.what the target is.samples",
        "examined.what the target is.what",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
