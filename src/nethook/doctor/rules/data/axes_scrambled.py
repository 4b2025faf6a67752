"""A `view` gives axes another order, and mixes their elements.

Cause: `x.view(batch, channels, height, width)` of a tensor that lies as (batch, height, width,
channels), `view(batch, steps, …)` of one that lies as (steps, batch, …): `permute` or `transpose`
was meant. A view changes no element's place in memory.
Evidence: the shapes before and after, in a step that was run again: an axis of the same size stands
elsewhere, and no splitting and joining of neighbours leads there.
Fix: `permute` or `transpose` first, then `reshape`.
Silent: where neighbours are split or joined, where axes are of equal size, and for the shift of
relative positions, (T + 1, T) as (T, T + 1). A note where the run does its job, and where splitting
and joining could lead to the same sizes, as where frames are stacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, meant, numbers
from nethook.doctor.signals.progress import PROGRESS_READS, progress

EXAMINED = "axes keep their meaning"


class Thresholds(NamedTuple):
    """What may be changed."""

    axes: float = 2  # that are mixed


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None:
        return
    given, made = (tuple(numbers(result, name)) for name in ("given", "made"))
    mixed = sum(size > 1 for size in given)
    if mixed < limit.axes:
        return
    went = progress(history)
    works = went is not None and went.does_its_job
    yield finding_of(
        history,
        result,
        "axes-scrambled",
        f"a tensor of shape {given} is viewed as {made}: elements keep their order in memory, so "
        "that axes of the same size in another place have parts of each other."
        + (" Is that meant?" if works else "")
        + meant(result),
        "Exchange axes with permute or transpose, and use view or reshape only to split or join "
        "neighbours: x.permute(0, 2, 1).reshape(...).",
        {"axes that are viewed": Evidence(mixed, limit.axes)},
        "info" if works or result.outcome == "question" else "warning",
    )


RULE = Rule(
    "axes-scrambled",
    Cause.DATA,
    look,
    reads=(
        *PROGRESS_READS,
        f"examined.{EXAMINED}",
        f"examined.{EXAMINED}.given",
        f"examined.{EXAMINED}.lines",
        f"examined.{EXAMINED}.made",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
