"""Gradients are computed, and no optimizer ever steps.

Cause: `optimizer.step()` is missing, or the optimizer that steps is another one.
Evidence: backward passes were counted, not one step of an optimizer, and no weight has changed.
Fix: call `optimizer.step()` after `loss.backward()`.
Silent: where weights move all the same (by hand, or by an optimizer that is not torch's), where an
optimizer steps that holds other tensors (`stale-optimizer`), where the gradient of an input is what
is wanted (an attack, a saliency map, an image that is optimized), where steps were left out by a
loss scaler, and before the eighth backward pass: a script may accumulate gradients over a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import backward_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.graph import graph_of
from nethook.runs.names import BACKWARDS, OPTIMIZER_STEPS, SKIPPED_STEPS


class Thresholds(NamedTuple):
    """What may be changed."""

    backwards: float = 8  # passes without a step


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    backwards = history.loop(BACKWARDS).total
    steps = history.loop(OPTIMIZER_STEPS).total + history.loop(SKIPPED_STEPS).total
    graph = graph_of(history)
    meant = graph.tensors or graph.moved or any(one.steps for one in graph.optimizers)
    if backwards >= limit.backwards and steps == 0 and not meant and not _weights_move(history):
        yield Finding(
            "missing-step",
            "error",
            f"{backwards:.0f} backward passes{backward_line(history)} computed gradients, and no "
            "optimizer ever made a step: the weights are what they were at the start.",
            "Call optimizer.step() after loss.backward(), on an optimizer that was made with "
            "model.parameters().",
            first_step=history.first_step,
            last_step=history.steps - 1,
            evidence={
                "backward passes": Evidence(backwards, limit.backwards),
                "optimizer steps": Evidence(steps, 1),
            },
        )


def _weights_move(history: History) -> bool:
    """Whether the weights are other numbers than at the start, whoever has changed them."""
    ranks = [curve for of_ranks in history.fingerprints().values() for curve in of_ranks.values()]
    return any(len(set(curve.value.tolist())) > 1 for curve in ranks)


RULE = Rule(
    "missing-step",
    Cause.LOOP,
    look,
    reads=(
        "info.graph",
        "loss.source",
        "scalar.params_fingerprint",
        "series.@loop.backwards.mean",
        "series.@loop.forwards.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loop.skipped_steps.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
