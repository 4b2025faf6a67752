"""Gradients of several micro-batches are added up and never divided.

Cause: `loss.backward()` is called several times per step on means over micro-batches, so the
gradient is that many times too large.
Evidence: backward passes per step, and a mean that was not divided.
Fix: divide the loss by the number of micro-batches.
Silent: for one backward pass per step of an optimizer (several nets may each have one), for losses
that were divided, for sums, and for several different losses (a GAN's). It is information; a
warning where the loss does not fall.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import backward_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import BACKWARDS, OPTIMIZER_STEPS, WIPED


class Thresholds(NamedTuple):
    """What may be changed."""

    passes: float = 2  # backward passes of one loss per step
    steps: float = 3  # steps in which that was so


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    passes = history.loop(BACKWARDS)
    stepped = history.loop(OPTIMIZER_STEPS)
    records = history.records("train")
    if len(passes) < limit.steps or not stepped.total or not records:
        return
    if len({record.name for record in records}) != 1:  # several losses per step are several terms
        return
    # Of each optimizer: several nets with optimizers of their own have a pass each. What is cleared
    # before the step does not add up.
    wiped = history.loop(WIPED)
    per_loop = stepped.where(stepped.value > 0)
    kept = median(passes.value) - (median(wiped.value) if len(wiped) else 0.0)
    a_step = kept / max(1.0, median(per_loop.value))
    whole = [record for record in records if record.fact("reduction") == "mean"]
    undivided = [record for record in whole if record.fact("divided_by") is None]
    if a_step < limit.passes or not whole or len(undivided) < len(whole):
        return
    went = progress(history)
    bad = went is not None and not went.improves
    yield Finding(
        "unscaled-accumulation",
        "warning" if bad else "info",
        f"{a_step:.0f} backward passes per step{backward_line(history)} add up mean losses that "
        f"were not divided: gradients are {a_step:.0f} times those of the joined batch.",
        f"Write (loss / {a_step:.0f}).backward(), or divide the learning rate by {a_step:.0f}.",
        first_step=int(passes.step[0]),
        last_step=history.steps - 1,
        evidence={"backward passes a step": Evidence(a_step, limit.passes)},
    )


RULE = Rule(
    "unscaled-accumulation",
    Cause.LOOP,
    look,
    reads=(
        *PROGRESS_READS,
        "loss.divided_by",
        "loss.source",
        "series.@loop.backwards.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loop.forwards.mean",
        "series.@loop.wiped_backwards.mean",
    ),
    defaults=Thresholds(),
)
