"""Weights start too large or too small.

Cause: weights drawn with a spread that does not fit the width of their layers.
Evidence: the size of activations over depth in the first step: it grows far beyond what went in, or
is lost over several layers, forth and back; and the run has trouble with it. A norm sets a scale of
its own, so layers are compared with the norm before them.
Fix: draw them so that each layer keeps the size of its signal.
Silent: where the run does its job all the same, or had learnt before it failed; for single layers
that start small (heads, ends of residual branches); and for weights that were loaded, or that began
far below what a guess would score.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.divergence import DIVERGENCE_READS, divergence
from nethook.doctor.signals.earlier import EARLIER_READS, was_trained_before
from nethook.doctor.signals.first_loss import FIRST_LOSS_READS, first_loss
from nethook.doctor.signals.layers import fades
from nethook.doctor.signals.progress import progress
from nethook.doctor.signals.scale import SCALE_READS, ScaledLayer, scaled_layers
from nethook.runs.names import OUTPUTS
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    growth: float = 30  # of activations, over the whole depth
    loss: float = 10  # first loss by the usual one


FIX = (
    "Start with weights that keep the scale: nethook.init.plan(model, inputs) shows which, "
    "nethook.init.apply_ sets them."
)
LOSS_EVIDENCE: Final = "first loss by the usual one"
HIGH_LOSS = 3.0
"""First loss by the usual one, before training: one batch has no trouble yet that would show."""


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    layers = scaled_layers(history)
    if len(layers) < 2 or was_trained_before(history):
        return
    began = first_loss(history)
    high_loss = began[0] / began[1] if began is not None else 0.0
    # A run that had learnt shows that its start was good enough.
    ill = went is not None and not went.does_its_job and divergence(history) is None
    poor = went is not None and not went.does_well and divergence(history) is None
    hidden = [layer for layer in layers if not layer.head]
    largest = max(layers, key=lambda layer: layer.up)
    large = largest.up > limit.growth and high_loss > limit.loss
    if not large and hidden and (ill or poor):
        largest = max(hidden, key=lambda layer: layer.up)
        large = largest.up > limit.growth
    smallest = None if large or not ill else _lost(history, hidden, limit.growth)
    if large:
        worst, factor, word = largest, largest.up, "large"
    elif smallest is not None:
        worst, factor, word = smallest, smallest.down, "small"
    else:
        return
    where = "where it came in" if worst.segment == layers[0].segment else "behind the last norm"
    yield Finding(
        "bad-init-scale",
        "warning",
        f"weights start too {word}: at step {_first_step(history, worst)} the signal is "
        f"{factor:.3g} times as {word} at `{worst.address}` as {where}.",
        FIX,
        sites=(worst.address,),
        first_step=_first_step(history, worst),
        last_step=history.steps - 1,
        evidence={
            "change of the signal over depth": Evidence(factor, limit.growth),
            LOSS_EVIDENCE: Evidence(high_loss, limit.loss),
        },
    )


def _lost(history: History, hidden: Sequence[ScaledLayer], growth: float) -> ScaledLayer | None:
    """The layer at which a signal was lost over several layers, on its way forth and back.

    One layer that starts small is meant, wherever it stands: a head, the end of a residual branch.
    """
    chain, worst = 0, None
    for before, layer in itertools.pairwise((None, *hidden)):
        assert layer is not None
        same = before is not None and before.segment == layer.segment
        shrinks = layer.size * 3 < (before.size if same and before is not None else layer.reference)
        chain = (chain if same else 0) + 1 if shrinks else 0
        if chain >= 2 and layer.down > growth and (worst is None or layer.down > worst.down):
            worst = layer
    return worst if worst is not None and fades(history, 1 / growth) else None


def _first_step(history: History, layer: ScaledLayer) -> int:
    return int(history.curve(layer.address, OUTPUTS, "rms").step[0])


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
        *dict.fromkeys((*DIVERGENCE_READS, *EARLIER_READS, *FIRST_LOSS_READS, *SCALE_READS)),
        "series.grads.rms",
    ),
    defaults=Thresholds(),
)
