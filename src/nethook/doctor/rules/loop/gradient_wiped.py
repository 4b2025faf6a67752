"""Gradients are cleared before a step can use them: all of them, or those of most micro-batches.

Cause: `zero_grad` stands between backward and step; or inside the loop over micro-batches, so that
a step has the gradient of the last one alone.
Evidence: backward passes whose gradients were cleared before a step could use them, followed by
steps without gradients; or by steps on exactly what the last pass has left, with weights that did
not move in between.
Fix: call `zero_grad` before `backward`, once per step.
Silent: for passes whose gradients are thrown away now and then (a probe), or used in another way:
weights that moved in between (SAM), inputs that want a gradient (adversarial examples), a step on a
sum of what was kept (PCGrad), closures, several optimizers, and losses of different lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import backward_line, call_lines
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import BACKWARDS, EMPTY_GRADIENTS, OPTIMIZER_STEPS, WIPED, WIPED_PASSES


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 3  # passes that were wiped
    share: float = 0.5  # of all backward passes since the first of them
    empty: float = 0.9  # share of parameters without a gradient at the step
    micro: float = 0.45  # of all backward passes, where steps use what the last one has left


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    wiped = history.loop(WIPED)
    bad = wiped.where(wiped.value > 0)
    if not len(bad):
        return
    first = int(bad.step[0])
    passes = history.loop(BACKWARDS).since(first).total
    empty = history.loop(EMPTY_GRADIENTS).since(first)
    nothing = float((empty.value * empty.steps).sum() / max(1, empty.steps.sum()))
    share = bad.total / max(1.0, passes)
    if bad.total < limit.steps or share < limit.micro:
        return
    evidence = {
        "wiped backward passes": Evidence(bad.total, limit.steps),
        "share of backward passes": Evidence(share, limit.share),
        "parameters without gradient at the step": Evidence(nothing, limit.empty),
    }
    if share >= limit.share and nothing >= limit.empty:
        yield Finding(
            "gradient-wiped",
            "error",
            f"the gradients of {bad.total:.0f} of {passes:.0f} backward passes"
            f"{backward_line(history)} were cleared before the optimizer's step could use them; "
            f"{nothing:.0%} of its parameters had none.",
            "Call optimizer.zero_grad() before loss.backward(), not between it and "
            "optimizer.step().",
            first_step=first,
            last_step=int(bad.step[-1]),
            evidence=evidence,
            lines=call_lines(history, "zero_grad"),
        )
    elif _loses_micro_batches(history):
        a_step = passes / max(1.0, history.loop(OPTIMIZER_STEPS).since(first).total)
        yield Finding(
            "gradient-wiped",
            "error",
            f"of {a_step:.0f} backward passes per step{backward_line(history)} the gradients of "
            f"{a_step - 1:.0f} are cleared before the step, which uses those of the last one "
            "alone: nothing is accumulated.",
            "Call optimizer.zero_grad() once per step, before the first micro-batch or right after "
            "optimizer.step(), and not in every micro-batch.",
            first_step=first,
            last_step=int(bad.step[-1]),
            evidence=evidence,
            lines=call_lines(history, "zero_grad"),
        )


def _loses_micro_batches(history: History) -> bool:
    """Whether the gradients that are cleared are those of a loss that the step is of, and lost."""
    if len({record.name for record in history.records("train")}) != 1:
        return False
    for event in history.events(WIPED_PASSES)[:1]:
        seen = {name: int(event.data.get(name) or 0) for name in ("moved", "inputs", "other")}
        return not any(seen.values())
    return False


RULE = Rule(
    "gradient-wiped",
    Cause.LOOP,
    look,
    reads=(
        "event.order",
        "event.wiped-passes",
        "loss.source",
        "series.@loop.backwards.mean",
        "series.@loop.empty_gradients.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loop.wiped_backwards.mean",
    ),
    defaults=Thresholds(),
)
