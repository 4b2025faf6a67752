"""The output does not depend on the input.

Cause: the input is overwritten, multiplied by zero, or never used in the forward.
Evidence: the spread of outputs over a batch of different inputs is nothing, from the first step on
and for good; or, on a copy, other samples and noise as inputs leave the output as it is, with the
weights that it has and with others.
Fix: look at what the forward does with its argument.
Silent: where an input may be meant to have no effect (the model draws what it returns, the loss has
the input itself, all targets are the same) and the spread says nothing else, where the loss falls
and only the experiment speaks, where inputs do not differ either (`input-collapsed`), where the
units of a layer are dead or at their ends from the start, where the signal fades from layer to
layer, for batches of one, and where the spread is small and not nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import lines, since
from nethook.doctor.signals.layers import STOPPED_READS, fades, stopped_layers
from nethook.doctor.signals.onset import first_step_of
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import BATCH_SIZE, INPUT_SPREAD, OUTPUT_SPREAD

EXAMINED: Final = "the input matters"
NON_FINITE: Final = "non-finite"
FIX: Final = "Look in the forward for an input that is overwritten, zeroed or not passed on."


class Thresholds(NamedTuple):
    """What may be changed."""

    spread: float = 1e-5  # of outputs, relative to their size
    inputs: float = 1e-2  # of inputs
    share: float = 0.95  # of the steps
    fades: float = 1e-3  # gradient of the first layer by the largest


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = next((one for one in history.examined(EXAMINED) if one.outcome == "found"), None)
    spread = _by_spread(history, limit)
    went = progress(history)
    # What learns reads its input: the experiment alone says nothing of such a run.
    is_still = went is not None and not went.improves
    # A signal that fades with depth is below what the last layers can add, bit for bit.
    if spread is None and result is not None and is_still and not _is_lost(history, limit):
        yield Finding(
            "input-ignored",
            "error",
            "on a copy of the model, other samples and noise as inputs leave its output exactly as "
            "it is, with the weights that it has and with others: nothing of the input reaches it.",
            FIX,
            first_step=since(result),
            last_step=max(since(result), history.steps - 1),
            evidence={"change of the output with other inputs": Evidence(0.0)},
            lines=lines(result),
        )
    elif spread is not None:
        shown = {} if result is None else {"change of the output with other inputs": Evidence(0.0)}
        yield replace(spread, evidence={**spread.evidence, **shown})


def _is_lost(history: History, limit: Thresholds) -> bool:
    """Whether layers stop or weaken the signal: it came in, and something else is the cause."""
    return bool(stopped_layers(history)) or fades(history, limit.fades)


def _by_spread(history: History, limit: Thresholds) -> Finding | None:
    """What the outputs of the run's own batches show."""
    out, given = history.batch(OUTPUT_SPREAD), history.batch(INPUT_SPREAD)
    broken = [event.step for event in history.events(NON_FINITE)]
    if broken:  # numbers that are none do not differ
        out = out.until(min(broken) - 1)
    size = history.batch(BATCH_SIZE)
    if len(out) < 5 or not len(given) or not len(size) or median(size.value) < 2:
        return None
    constant = float((out.value <= limit.spread).mean())
    differs = median(given.value)
    if constant < limit.share or out.value[0] > limit.spread or differs < limit.inputs:
        return None
    if _is_lost(history, limit):
        return None
    began = first_step_of(out)
    return Finding(
        "input-ignored",
        "error",
        f"different inputs (spread {differs:.3g}) give one and the same output (spread "
        f"{median(out.value):.1g}), from step {began} on.",
        FIX,
        first_step=began,
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
        *PROGRESS_READS,
        *STOPPED_READS,
        "event.non-finite",
        "examined.the input matters",
        "examined.the input matters.lines",
        "module.parameters",
        "series.@batch.input_spread.mean",
        "series.@batch.output_spread.mean",
        "series.@batch.size.mean",
        "series.@loop.forwards.mean",
        "series.grads.rms",
    ),
    defaults=Thresholds(),
)
