"""Gradients pile up over steps.

Cause: `optimizer.zero_grad()` is missing, so that each backward pass adds to gradients which a step
has used already.
Evidence: backward passes that began on top of used gradients, in nearly every step.
Fix: call `optimizer.zero_grad()` before `loss.backward()`.
Silent: for accumulation that ends in a step, and for a few steps at which it happened by the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import BACKWARDS, OLD_GRADIENTS


@dataclass(frozen=True)
class Thresholds:
    """What may be changed."""

    steps: float = 3  # steps in which it must have happened
    share: float = 0.5  # of the steps since it happened first


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    old = history.loop(OLD_GRADIENTS)
    bad = old.where(old.value > 0)
    if not len(bad):
        return
    first = int(bad.step[0])
    since = history.loop(BACKWARDS).since(first)
    often = bad.total
    share = float(bad.steps.sum()) / max(1.0, float(since.steps.sum()))
    if often >= limit.steps and share >= limit.share:
        yield Finding(
            "missing-zero-grad",
            "error",
            f"{often:.0f} backward passes added their gradients to those of steps before: "
            f"gradients pile up since step {first}, and the steps grow with them.",
            "Call optimizer.zero_grad() once a step, before loss.backward().",
            first_step=first,
            last_step=int(bad.step[-1]),
            evidence={
                "backward passes on used gradients": Evidence(often, limit.steps),
                "share of steps": Evidence(share, limit.share),
            },
        )


RULE = Rule(
    "missing-zero-grad",
    Cause.LOOP,
    look,
    reads=("series.@loop.backwards.mean", "series.@loop.old_gradients.mean"),
    defaults=Thresholds(),
)
