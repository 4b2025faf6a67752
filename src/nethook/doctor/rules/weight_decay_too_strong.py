"""Weights shrink faster than they learn.

Cause: a weight decay that outweighs the gradients.
Evidence: what decay takes in a step by what the step changes, weights that shrink over the run, and
a loss that does not fall well.
Fix: a smaller decay.
Silent: where the run does its job, and for decay that is balanced by gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import GROUPS, PARAMS, UPDATE_RATIO
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    shrink: float = 0.5  # size of the weights at the end, by that at the start
    taken: float = 0.5  # what decay alone would have taken over the run
    part: float = 0.7  # of a step's change that is decay, from which on weights need not shrink so


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    decay = _decay(history)
    if went is None or went.does_its_job or not went.finite or decay <= 0:
        return
    rates = [median(curve.value) for curve in history.rates().values() if len(curve)]
    taken = 1 - (1 - min(1.0, decay * max(rates, default=0.0))) ** history.steps
    shrunk = []
    for parameter in history.parameters:
        size = history.curve(parameter.address, PARAMS, "rms")
        if len(parameter.fact("shape", [])) >= 2 and parameter.fact("groups") and len(size) >= 5:
            shrunk.append((size.value[-1] / max(size.value[0], 1e-30), parameter.address))
    if not shrunk or taken < limit.taken:
        return
    middle = median([share for share, _ in shrunk])
    ratio = history.loop(UPDATE_RATIO)
    update = median(ratio.value) if len(ratio) else 0.0
    by_decay = min(1.0, decay * max(rates, default=0.0) / update) if update > 0 else 0.0
    if middle > limit.shrink and (by_decay < limit.part or middle > 1):
        return
    sites = tuple(address for share, address in shrunk if share <= max(limit.shrink, middle))
    yield Finding(
        "weight-decay-too-strong",
        "warning",
        f"weights have shrunk to {number(100 * middle)} % of their size at the start: weight decay "
        f"{number(decay)} at a rate of {number(max(rates, default=0.0))} takes "
        f"{decay * max(rates, default=0.0):.2%} of them in every step, more than the gradients "
        f"give, and the loss stays at {went.end:.3g}.",
        f"Lower the weight decay, to {number(min(decay / 100, 0.01))} or less.",
        sites=sites,
        first_step=0,
        last_step=history.steps - 1,
        evidence={
            "weights at the end by those at the start": Evidence(middle, limit.shrink),
            "what decay alone would take": Evidence(taken, limit.taken),
            "decay by the whole update": Evidence(by_decay, limit.part),
        },
    )


def _decay(history: History) -> float:
    """The largest weight decay of any group."""
    largest = 0.0
    for event in history.events(GROUPS):
        for group in event.data.get("groups") or []:
            value = group.get("weight_decay") if isinstance(group, dict) else None
            if isinstance(value, int | float):
                largest = max(largest, float(value))
    return largest


RULE = Rule(
    "weight-decay-too-strong",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "event.groups",
        "parameter.groups",
        "parameter.shape",
        "scalar.lr",
        "series.@loop.forwards.mean",
        "series.@loop.update_ratio.mean",
        "series.params.rms",
    ),
    defaults=Thresholds(),
)
