"""`zero_grad` stands between backward and step, so that the step finds nothing.

Cause: the lines of the loop are in the wrong order.
Evidence: backward passes whose gradients were cleared before a step could use them, followed by
steps without gradients.
Fix: call `zero_grad` before `backward`.
Silent: for passes whose gradients are thrown away on purpose now and then (a GAN's generator pass
through its discriminator, a probe of the gradient), as long as the steps find gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import backward_line
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import BACKWARDS, EMPTY_GRADIENTS, WIPED


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 3  # passes that were wiped
    share: float = 0.5  # of all backward passes since the first of them
    empty: float = 0.9  # share of parameters without a gradient at the step


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
    if bad.total >= limit.steps and share >= limit.share and nothing >= limit.empty:
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
            evidence={
                "wiped backward passes": Evidence(bad.total, limit.steps),
                "share of backward passes": Evidence(share, limit.share),
                "parameters without gradient at the step": Evidence(nothing, limit.empty),
            },
        )


RULE = Rule(
    "gradient-wiped",
    Cause.LOOP,
    look,
    reads=(
        "loss.source",
        "series.@loop.backwards.mean",
        "series.@loop.empty_gradients.mean",
        "series.@loop.wiped_backwards.mean",
    ),
    defaults=Thresholds(),
)
