"""Gradients pile up over steps.

Cause: `optimizer.zero_grad()` is missing, so that each backward pass adds to gradients which a step
has used already.
Evidence: steps on gradients that were added to those which an earlier step has used, nearly always.
Fix: call `optimizer.zero_grad()` before `loss.backward()`.
Silent: for accumulation that ends in a step, for gradients that are cleared before they are used (a
generator's pass adds to those of its discriminator), and for a few steps at which it happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import backward_line, call_lines
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import BACKWARDS, OLD_GRADIENTS, ZERO_GRADS


class Thresholds(NamedTuple):
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
    seen = max(1.0, float(since.steps.sum()))
    share = float(bad.steps.sum()) / seen
    if often >= limit.steps and share >= limit.share:
        yield Finding(
            "missing-zero-grad",
            "error",
            f"{often:.0f} of {seen:.0f} steps used gradients that were added to those of the step "
            f"before: {_cleared(history, first)}{backward_line(history)}, and they pile up since "
            f"step {first}.",
            "Call optimizer.zero_grad() once per step, before loss.backward().",
            first_step=first,
            last_step=int(bad.step[-1]),
            lines=call_lines(history, "zero_grad"),
            evidence={
                "steps on piled-up gradients": Evidence(often, limit.steps),
                "share of steps": Evidence(share, limit.share),
            },
        )


def _cleared(history: History, first: int) -> str:
    """How often gradients are cleared, in words."""
    times = history.loop(ZERO_GRADS).since(first).total
    if times < 0.5:
        return "nobody clears them"
    return f"they are cleared {times:.0f} time{'s' * (times > 1.5)} only"


RULE = Rule(
    "missing-zero-grad",
    Cause.LOOP,
    look,
    reads=(
        "event.order",
        "loss.source",
        "series.@loop.backwards.mean",
        "series.@loop.old_gradients.mean",
        "series.@loop.zero_grads.mean",
    ),
    defaults=Thresholds(),
)
