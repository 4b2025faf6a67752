"""A softmax runs over one number: it is always 1, and what made the number never learns.

Cause: scores of shape (batch, words, 1) and `softmax(scores, dim=-1)`, where `dim=1` was meant; or
a softmax behind a layer with one output, where a sigmoid was meant.
Evidence: the shape of what it was given in a step that was run again, and that it comes from a
layer with one output.
Fix: the axis that is to be chosen along; `sigmoid` for one output.
Silent: where the scores do not come from such a layer: an attention may have one word to look at. A
note where no other axis is left, and the run does its job: a mixture may have one expert.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, number, numbers
from nethook.doctor.signals.progress import PROGRESS_READS, progress

EXAMINED = "a softmax has a choice"


class Thresholds(NamedTuple):
    """What may be changed."""

    size: float = 1  # of the axis


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None:
        return
    given, dim = tuple(numbers(result, "given")), int(number(result, "dim", -1))
    went = progress(history)
    works = went is not None and went.does_its_job
    note = result.outcome == "question" and works
    yield finding_of(
        history,
        result,
        "softmax-over-one",
        f"a softmax runs over axis {dim} of scores of shape {given}, which has one element: what "
        "it returns is always 1, and the layer that makes the scores gets no gradient."
        + (" Is there to be one thing only to choose from?" if note else ""),
        "Choose along the axis that has the alternatives: softmax(scores, dim=1); for a single "
        "output use a sigmoid.",
        {"elements of the axis": Evidence(1, limit.size)},
        "info" if note else "warning",
    )


RULE = Rule(
    "softmax-over-one",
    Cause.LOSS,
    look,
    reads=(
        *PROGRESS_READS,
        f"examined.{EXAMINED}",
        f"examined.{EXAMINED}.dim",
        f"examined.{EXAMINED}.given",
        f"examined.{EXAMINED}.lines",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
