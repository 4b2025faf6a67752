"""Weights start too large or too small.

Cause: weights drawn with a spread that does not fit the width of their layers.
Evidence: the size of activations over depth in the first step: it grows or shrinks from layer to
layer far beyond what went in; and the run has trouble with it.
Fix: draw them so that each layer keeps the size of its signal.
Silent: where the run does its job all the same, and for what a norm puts right at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.first_loss import FIRST_LOSS_READS, first_loss
from nethook.doctor.signals.layers import pairs, profile, weighted
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.runs.names import INPUTS, OUTPUTS
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    growth: float = 30  # of activations, over the whole depth
    loss: float = 10  # first loss by the usual one


FIX = (
    "Start with weights that keep the scale: nethook.init.plan(model, inputs) shows which, "
    "nethook.init.apply_ sets them."
)
HIGH_LOSS = 3.0
"""First loss by the usual one, before training: one batch has no trouble yet that would show."""


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    chosen = weighted(history)
    sizes = list(pairs(profile(history, OUTPUTS, "rms", chosen, 0, 0)))
    if len(sizes) < 2:
        return
    entering = history.curve("", INPUTS, "rms").until(0)
    whole = str(history.series_fact("", INPUTS, "dtype", ""))
    start = float(entering.value[0]) if len(entering) and "float" in whole else sizes[0][1]
    largest = max(sizes, key=lambda layer: layer[1])
    # The last layer may be small on purpose: the answer of a fresh network is near zero.
    smallest = min(sizes[:-1], key=lambda layer: layer[1])
    up, down = largest[1] / max(start, 1e-30), start / max(smallest[1], 1e-30)
    began = first_loss(history)
    high_loss = began[0] / began[1] if began is not None else 0.0
    ill = went is not None and not went.does_its_job
    poor = went is not None and not went.does_well and largest[0] != sizes[-1][0]
    large = up > limit.growth and (ill or poor or high_loss > limit.loss)
    small = down > limit.growth and ill and not large
    if not (large or small):
        return
    worst, factor = (largest, up) if large else (smallest, down)
    word = "large" if large else "small"
    yield Finding(
        "bad-init-scale",
        "warning",
        f"weights start too {word}: at step 0 the signal is {factor:.3g} times as {word} at "
        f"`{worst[0]}` as where it came in.",
        FIX,
        sites=(worst[0],),
        first_step=0,
        last_step=history.steps - 1,
        evidence={
            "change of the signal over depth": Evidence(factor, limit.growth),
            "first loss by the usual one": Evidence(high_loss, limit.loss),
        },
    )


def signal_before_training(address: str, relative: float) -> Finding:
    """A finding of the pre-flight check: the signal at a layer, by what keeps its scale."""
    word = "large" if relative > 1 else "small"
    return Finding(
        "bad-init-scale",
        "warning",
        f"weights start too {word}: the signal at `{address}` is {number(relative)} times what "
        "keeps its scale.",
        FIX,
        sites=(address,),
        evidence={"signal by what it should be": Evidence(relative, Thresholds().growth)},
    )


def loss_before_training(value: float, usual: float) -> Finding:
    """A finding of the pre-flight check: the first loss, by what is usual."""
    return Finding(
        "bad-init-scale",
        "warning",
        f"the first loss is {number(value)}, where {number(usual)} is usual: the network is sure "
        "of answers that it cannot know yet.",
        "Start with a smaller last layer, scale inputs (and targets of a regression) to a spread "
        "of about 1, or use nethook.init.apply_.",
        evidence={"first loss by the usual one": Evidence(value / usual, HIGH_LOSS)},
    )


RULE = Rule(
    "bad-init-scale",
    Cause.START,
    look,
    reads=(
        *dict.fromkeys((*PROGRESS_READS, *FIRST_LOSS_READS)),
        "module.activation",
        "module.first_call",
        "module.leaf",
        "module.parameters",
        "series.@loop.forwards.mean",
        "series.inputs.info.dtype",
        "series.inputs.rms",
        "series.outputs.rms",
    ),
    defaults=Thresholds(),
)
