"""In evaluation mode, the same batch gives another output every time.

Cause: `F.dropout(x)` without `training=self.training`, `nn.Dropout(p)(x)` made anew in the
forward, a dropout layer that `eval()` does not reach, attention whose `dropout_p` is never 0.
Evidence: on a copy, two passes in evaluation mode with different random states differ, and a call
of dropout was active in them.
Fix: hand the mode of the module to the function.
Silent: where both passes are the same. Dropout that the script switches on with `training=True`,
and models that draw samples, may be meant so: a note (`info`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, number, text

EXAMINED = "evaluation repeats itself"


class Thresholds(NamedTuple):
    """What may be changed."""

    differs: float = 1e-5  # how far outputs move, by the largest of them


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None or not number(result, "differs", 0.0) > limit.differs:
        return
    operation, p = text(result, "operation"), number(result, "p", 0.0)
    if operation:
        which = f"{operation} (p={p:g}) is active"
        fix = "Write F.dropout(x, p, training=self.training), or make one nn.Dropout in __init__."
        if operation.endswith("attention"):
            fix = "Write dropout_p=self.p if self.training else 0.0."
    else:
        which = "the model draws random numbers"
        fix = "Nothing, if the model is meant to sample. Fix a seed where evaluations are compared."
    yield finding_of(
        history,
        result,
        "random-evaluation",
        f"in evaluation mode {which}: two passes over one batch differ by "
        f"{number(result, 'differs'):.2g} of the largest output.",
        fix,
        {"difference": Evidence(number(result, "differs"), limit.differs)},
        "warning" if result.outcome == "found" else "info",
    )


RULE = Rule(
    "random-evaluation",
    Cause.LOOP,
    look,
    reads=(
        "examined.evaluation repeats itself",
        "examined.evaluation repeats itself.differs",
        "examined.evaluation repeats itself.lines",
        "examined.evaluation repeats itself.operation",
        "examined.evaluation repeats itself.p",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
