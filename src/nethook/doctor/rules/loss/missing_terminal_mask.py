"""The target of the last step of an episode hopes for what comes after it.

Cause: `target = reward + gamma * q(next).max(1)` without `done`: a crash costs nothing, because the
value of some next state is added all the same.
Evidence: the operations that made the target: one number per row, and a factor times what a network
says of something else, with nothing that could leave it out for single rows.
Fix: multiply by `1 - done`.
Silent: where a second number per row, a mask or a `where` is part of the target, and for targets of
any other kind. It is a question (`info`): a task may have no end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, number

EXAMINED = "episodes end"


class Thresholds(NamedTuple):
    """What may be changed."""

    rows: float = 8  # targets in a batch


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None or number(result, "rows", 0) < limit.rows:
        return
    yield finding_of(
        history,
        result,
        "missing-terminal-mask",
        "every target is a number plus a factor times what a network says of another state, for "
        "all rows alike: nothing is left out where an episode has ended. Is that meant? It is if "
        "episodes have no end.",
        "Leave out the value of the next state where there is none: reward + gamma * (1 - done) * "
        "value.",
        {"targets in a batch": Evidence(number(result, "rows", 0), limit.rows)},
        "info",
    )


RULE = Rule(
    "missing-terminal-mask",
    Cause.LOSS,
    look,
    reads=(
        "examined.episodes end",
        "examined.episodes end.lines",
        "examined.episodes end.rows",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
