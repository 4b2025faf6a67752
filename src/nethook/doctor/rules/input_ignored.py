"""The output does not depend on the input.

Cause: the input is overwritten, multiplied by zero, or never used in the forward.
Evidence: the spread of outputs over a batch of different inputs is nothing, from the first step on
and for good.
Fix: look at what the forward does with its argument.
Silent: where inputs do not differ either (`input-collapsed`), where the units of a layer are dead
or at their ends from the start, where the signal fades from layer to layer, for batches of one, and
where the spread is small and not nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import STOPPED_READS, fades, stopped_layers
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import BATCH_SIZE, INPUT_SPREAD, OUTPUT_SPREAD


class Thresholds(NamedTuple):
    """What may be changed."""

    spread: float = 1e-5  # of outputs, relative to their size
    inputs: float = 1e-2  # of inputs
    share: float = 0.95  # of the steps
    fades: float = 1e-3  # gradient of the first layer by the largest


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    out, given = history.batch(OUTPUT_SPREAD), history.batch(INPUT_SPREAD)
    size = history.batch(BATCH_SIZE)
    if len(out) < 5 or not len(given) or not len(size) or median(size.value) < 2:
        return
    constant = float((out.value <= limit.spread).mean())
    differs = median(given.value)
    if constant < limit.share or out.value[0] > limit.spread or differs < limit.inputs:
        return
    if stopped_layers(history) or fades(history, limit.fades):
        return
    yield Finding(
        "input-ignored",
        "error",
        f"different inputs (spread {differs:.3g}) give one and the same output (spread "
        f"{median(out.value):.1g}), from the first step on.",
        "Look in the forward for an input that is overwritten, zeroed or not passed on.",
        first_step=int(out.step[0]),
        last_step=int(out.step[-1]),
        evidence={
            "spread of outputs": Evidence(median(out.value), limit.spread),
            "spread of inputs": Evidence(differs, limit.inputs),
        },
    )


RULE = Rule(
    "input-ignored",
    Cause.DATA,
    look,
    reads=(
        *STOPPED_READS,
        "module.parameters",
        "series.@batch.input_spread.mean",
        "series.@batch.output_spread.mean",
        "series.@batch.size.mean",
        "series.grads.rms",
    ),
    defaults=Thresholds(),
)
