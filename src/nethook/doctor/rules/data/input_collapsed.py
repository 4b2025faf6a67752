"""Inputs are nearly constant.

Cause: they were normalised twice, divided in whole numbers, or have the wrong type.
Evidence: samples do not differ, or there is one value only, or everything lies within a hundredth
of zero, while the loss does not fall. Or a further input, as large as the targets, is zero
throughout: a decoder that is fed nothing.
Fix: look at what the loader gives: its range, type and spread.
Silent: where the run does its job all the same, and for inputs that are no floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.onset import since
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import BATCH_SIZE, INPUT_DISTINCT, INPUT_SPREAD, INPUTS

MOST_INPUTS: Final = 8
LEAST: Final = 5
"""Windows in which an input was measured."""


class Thresholds(NamedTuple):
    """What may be changed."""

    spread: float = 1e-3  # between samples, relative to their size
    size: float = 0.01  # root mean square
    distinct: float = 1


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    if went is None or went.does_its_job:
        return
    rms, low = history.curve("", INPUTS, "rms"), history.curve("", INPUTS, "std")
    spread, distinct = history.batch(INPUT_SPREAD), history.batch(INPUT_DISTINCT)
    evidence: dict[str, Evidence] = {}
    began: list[int] = []
    size = history.batch(BATCH_SIZE)
    several = len(size) > 0 and median(size.value) >= 2
    if len(spread) and several and median(spread.value) < limit.spread:
        evidence["spread between samples"] = Evidence(median(spread.value), limit.spread)
        began.append(since(spread, spread.value < limit.spread))
    if len(distinct) and median(distinct.value) <= limit.distinct:
        evidence["different values"] = Evidence(median(distinct.value), 2)
        began.append(since(distinct, distinct.value <= limit.distinct))
    tiny = len(rms) and len(low) and median(low.value) < limit.size * 0.5
    if tiny and median(rms.value) < limit.size:
        evidence["size of the inputs"] = Evidence(median(rms.value), limit.size)
        began.append(since(rms, rms.value < limit.size))
    if not evidence:
        yield from _another_input(history)
        return
    shown = ", ".join(f"{name} {measured.value:.2g}" for name, measured in evidence.items())
    what = "next to nothing" if list(evidence) == ["size of the inputs"] else "nearly constant"
    yield Finding(
        "input-collapsed",
        "error",
        f"what enters the network is {what} ({shown}): there is little in it to learn from.",
        "Look at one batch: x.dtype, x.min(), x.max(), x.std(). Often it was divided by 255 twice, "
        "or divided in whole numbers.",
        first_step=min(began),
        last_step=history.steps - 1,
        evidence=evidence,
    )


def _another_input(history: History) -> Iterator[Finding]:
    """A further input as large as the targets, that is zero throughout: what a decoder is fed."""
    records = history.records("train")
    shape = (records[-1].fact("target") or {}).get("shape") if records else None
    for place in range(1, MOST_INPUTS):
        name = f"{INPUTS}:{place}"
        rms = history.curve("", name, "rms")
        if len(rms) < LEAST or rms.value.max() > 0 or not shape or len(shape) < 2:
            continue
        if list(history.series_fact("", name, "shape", ())) != list(shape):
            continue
        yield Finding(
            "input-collapsed",
            "warning",
            f"input {place + 1} of the network has the shape of the targets, {tuple(shape)}, and "
            "is zero in every element and step, while little is learnt.",
            "Feed what the network is to go on from: of a decoder, the targets shifted by one "
            "step, y[:, :-1], behind a start value.",
            first_step=int(rms.step[0]),
            last_step=history.steps - 1,
            evidence={"size of the input": Evidence(0.0, 1e-12)},
        )
        return


RULE = Rule(
    "input-collapsed",
    Cause.DATA,
    look,
    reads=(
        *PROGRESS_READS,
        "series.@batch.input_distinct.mean",
        "series.@batch.input_spread.mean",
        "series.@batch.size.mean",
        "series.@loop.forwards.mean",
        "series.inputs.info.shape",
        "series.inputs.rms",
        "series.inputs.std",
    ),
    defaults=Thresholds(),
)
