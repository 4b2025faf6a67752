"""Weights shrink faster than they learn.

Cause: a weight decay that outweighs the gradients.
Evidence: what decay takes in a step by what the step changes, weights that shrink over the run, and
a loss that does not fall well; or decay that takes so much of the weights in a step that they soon
forget what they have learnt, and a loss that has stopped well above zero. Or a penalty on the
weights in the loss, weights of next to nothing, and a loss that one answer for all would score.
Fix: a smaller decay.
Silent: where the run does its job, and for decay that is balanced by gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import file_and_line, optimizer_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.onset import first_step_of
from nethook.doctor.signals.progress import (
    PROGRESS_READS,
    Progress,
    constant_of_targets,
    progress,
)
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import GROUPS, PARAMS, UPDATE_RATIO
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    shrink: float = 0.5  # size of the weights at the end, by that at the start
    taken: float = 0.5  # what decay alone would have taken over the run
    part: float = 0.7  # of a step's change that is decay, from which on weights need not shrink so
    gone: float = 0.2  # size of the weights at the end, where a penalty is part of the loss
    useless: float = 0.9  # of what a constant answer scores
    forgets: float = 5e-3  # of the weights that decay takes in a step: they last 200 steps or fewer


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    decay, direct = _decay(history)
    if went is None or not went.finite:
        return
    if decay <= 0:
        yield from _by_hand(history, went, limit)
        return
    rates = [median(curve.value) for curve in history.rates().values() if len(curve)]
    a_step = min(1.0, decay * max(rates, default=0.0))
    taken = 1 - (1 - a_step) ** history.steps
    sizes = {}
    for parameter in history.parameters:
        size = history.curve(parameter.address, PARAMS, "rms")
        if len(parameter.fact("shape", [])) >= 2 and parameter.fact("groups") and len(size) >= 5:
            sizes[parameter.address] = size.value[-1] / max(size.value[0], 1e-30)
    if not sizes or taken < limit.taken:
        return
    middle = median(list(sizes.values()))
    ratio = history.loop(UPDATE_RATIO)
    update = median(ratio.value) if len(ratio) else 0.0
    by_decay = min(1.0, a_step / update) if update > 0 else 0.0
    shrinks = middle <= limit.shrink or (by_decay >= limit.part and middle <= 1)
    # What was learnt is taken away as fast as it comes, and the loss has long stopped to fall.
    forgets = direct and a_step >= limit.forgets and taken > 0.99 and _has_stalled(went)
    if forgets:
        said = (
            f"what a step has learnt is halved in {max(1, round(math.log(2) / a_step))} steps, and "
            f"the loss has stopped at {went.end:.3g}"
        )
    elif shrinks and not went.does_its_job:
        said = (
            f"weights have shrunk to {number(100 * middle)} % of their size at the start, and the "
            f"loss stays at {went.end:.3g}"
        )
    else:
        return
    least = max(limit.shrink, middle)
    yield Finding(
        "weight-decay-too-strong",
        "warning",
        f"weight decay {number(decay)} at a rate of {number(max(rates, default=0.0))} takes "
        f"{a_step:.2%} of the weights in every step: {said}.",
        f"Lower the weight decay, to {number(min(decay / 100, 0.01))} or less.",
        sites=tuple(address for address, share in sizes.items() if share <= least),
        first_step=_first_step(history, sizes),
        last_step=history.steps - 1,
        evidence={
            "weights at the end by those at the start": Evidence(middle, limit.shrink),
            "what decay alone would take": Evidence(taken, limit.taken),
            "decay by the whole update": Evidence(by_decay, limit.part),
            "what decay takes in a step": Evidence(a_step, limit.forgets),
        },
        lines=optimizer_lines(history),
    )


def _by_hand(history: History, went: Progress, limit: Thresholds) -> Iterator[Finding]:
    """A penalty on the weights is a summand of the loss, and all that is learnt is to be small."""
    records = history.records("train")
    if not records or not all(record.fact("penalties") for record in records):
        return
    constant = constant_of_targets(records)
    sizes = {}
    for parameter in history.parameters:
        size = history.curve(parameter.address, PARAMS, "rms")
        if len(parameter.fact("shape", [])) >= 2 and parameter.fact("groups") and len(size) >= 5:
            sizes[parameter.address] = size.value[-1] / max(size.value[0], 1e-30)
    if constant is None or not sizes or went.end < limit.useless * constant:
        return
    middle = median(list(sizes.values()))
    if middle > limit.gone:
        return
    yield Finding(
        "weight-decay-too-strong",
        "warning",
        f"the loss has a penalty on the weights, which have shrunk to {number(100 * middle)} % of "
        f"their size at the start, and it stays at {went.end:.3g}, where one answer for all inputs "
        f"would score {constant:.3g}: the penalty outweighs what is to be learnt.",
        "Lower the factor of the penalty, by a hundred, or use the weight_decay of AdamW.",
        sites=tuple(address for address, share in sizes.items() if share <= limit.gone),
        first_step=_first_step(history, sizes),
        last_step=history.steps - 1,
        evidence={
            "weights at the end by those at the start": Evidence(middle, limit.gone),
            "loss by what a constant answer scores": Evidence(went.end / constant, limit.useless),
        },
        lines=file_and_line(records[0].fact("source")),
    )


def _has_stalled(went: Progress) -> bool:
    """Whether a loss no longer falls, well above zero and above what it would be if it were fit."""
    if went.constant is not None and went.end < 0.3 * went.constant:
        return False
    return went.still < 2 and not went.fell > 0.7


def _first_step(history: History, sizes: Mapping[str, float]) -> int:
    """The first step of the decay: that of the first measured weight."""
    curves = [history.curve(address, PARAMS, "rms") for address in sizes]
    return min(first_step_of(curve) for curve in curves)


def _decay(history: History) -> tuple[float, bool]:
    """The largest weight decay of any group, and whether the optimizer takes it off directly.

    Adam and its like add it to the gradient, which they bring to another size.
    """
    largest, direct = 0.0, False
    for event in history.events(GROUPS):
        for group in event.data.get("groups") or []:
            value = group.get("weight_decay") if isinstance(group, dict) else None
            if isinstance(value, int | float) and value > largest:
                largest = float(value)
                kind = str(event.data.get("type"))
                direct = kind in ("SGD", "AdamW") or bool(group.get("decoupled_weight_decay"))
    return largest, direct


RULE = Rule(
    "weight-decay-too-strong",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "event.groups",
        "loss.penalties",
        "loss.source",
        "parameter.groups",
        "parameter.shape",
        "scalar.lr",
        "series.@loop.forwards.mean",
        "series.@loop.update_ratio.mean",
        "series.params.rms",
    ),
    defaults=Thresholds(),
)
