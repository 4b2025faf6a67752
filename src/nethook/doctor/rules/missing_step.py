"""Gradients are computed, and no optimizer ever steps.

Cause: `optimizer.step()` is missing, or the optimizer that steps is another one.
Evidence: backward passes were counted, and not one step of an optimizer.
Fix: call `optimizer.step()` after `loss.backward()`.
Silent: where steps were left out by a loss scaler, and before the third backward pass: a script
may accumulate gradients over a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import backward_line
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import BACKWARDS, OPTIMIZER_STEPS, SKIPPED_STEPS


class Thresholds(NamedTuple):
    """What may be changed."""

    backwards: float = 8  # passes without a step


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    backwards = history.loop(BACKWARDS).total
    steps = history.loop(OPTIMIZER_STEPS).total + history.loop(SKIPPED_STEPS).total
    if backwards >= limit.backwards and steps == 0:
        yield Finding(
            "missing-step",
            "error",
            f"{backwards:.0f} backward passes{backward_line(history)} computed gradients, and no "
            "optimizer ever made a step: the weights are what they were at the start.",
            "Call optimizer.step() after loss.backward(), on an optimizer that was made with "
            "model.parameters().",
            first_step=0,
            last_step=history.steps - 1,
            evidence={
                "backward passes": Evidence(backwards, limit.backwards),
                "optimizer steps": Evidence(steps, 1),
            },
        )


RULE = Rule(
    "missing-step",
    Cause.LOOP,
    look,
    reads=(
        "loss.source",
        "series.@loop.backwards.mean",
        "series.@loop.forwards.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loop.skipped_steps.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
