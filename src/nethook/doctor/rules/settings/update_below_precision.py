"""Updates are smaller than the type of the weights can tell: they are rounded away.

Cause: the weights themselves are bfloat16 or float16 (`model.to(torch.bfloat16)`), and the step
that the optimizer adds is less than half of the distance to the next number of that type.
Evidence: parameters of 16 bits; of their elements that have a gradient, most do not change in a
step at a rate above zero. A warning where little is learnt, a note where the run does its job: an
optimizer that rounds by chance, or keeps what was lost, moves each element rarely and rightly.
Fix: keep the weights in float32 and compute in 16 bits with `torch.autocast`.
Silent: for weights of 32 bits, for elements without a gradient (rows of an embedding that were not
looked up), where no rate is above zero, and where steps were left out by a loss scaler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import optimizer_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.onset import first_step_of
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import OPTIMIZER_STEPS, PARAM_GRADS, SKIPPED_STEPS, UPDATES

_BITS: Final = {"bfloat16": 8, "float16": 11}
"""Bits of the mantissa: the distance between neighbours is 2^(1 - bits) of a number or less."""


class Thresholds(NamedTuple):
    """What may be changed."""

    still: float = 0.75  # of the elements with a gradient, in a run that does not do its job
    noted: float = 0.95  # the same in one that does
    windows: float = 10  # in which updates were measured
    skipped: float = 0.1  # steps that a scaler left out


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    steps = history.loop(OPTIMIZER_STEPS).total
    if went is None or not went.finite or went.diverges or not steps:
        return
    if history.loop(SKIPPED_STEPS).total > limit.skipped * steps:
        return
    rates = {name: float(curve.value.max()) for name, curve in history.rates().items()}
    narrow = [
        (parameter, share)
        for parameter in history.parameters
        if parameter.fact("dtype") in _BITS
        and any(rates.get(f"{one}.{at}", 0.0) > 0 for one, at in parameter.fact("groups", []))
        and (share := _still(history, parameter, limit)) is not None
    ]
    if not narrow:
        return
    weights = np.array([float(one.fact("elements", 1)) for one, _ in narrow])
    still = float(np.average([share for _, share in narrow], weights=weights))
    if still < (limit.noted if went.does_its_job else limit.still):
        return
    kind = str(narrow[0][0].fact("dtype"))
    sites = tuple(one.address for one, share in narrow if share >= limit.still)
    yield Finding(
        "update-below-precision",
        "info" if went.does_its_job else "warning",
        f"the weights are {kind}, and in a step {still:.0%} of the elements that have a gradient "
        f"stay as they are: what the optimizer adds is less than {2.0 ** -_BITS[kind]:.1g} of a "
        "weight, and is rounded away."
        + ("" if went.does_its_job else f" The loss stays at {went.end:.3g}."),
        "Keep the weights in float32 and use torch.autocast for the forward; or use an optimizer "
        "that keeps float32 copies of the weights, or rounds by chance.",
        sites=sites,
        first_step=first_step_of(history.curve(narrow[0][0].address, UPDATES, "zero_share")),
        last_step=max(history.steps - 1, 0),
        evidence={"share of elements that stay": Evidence(still, limit.still)},
        lines=optimizer_lines(history),
    )


def _still(history: History, parameter: SiteFacts, limit: Thresholds) -> float | None:
    """Of the elements with a gradient, the share that a usual step leaves as they are."""
    update = history.curve(parameter.address, UPDATES, "zero_share")
    gradient = history.curve(parameter.address, PARAM_GRADS, "zero_share")
    _, ours, theirs = np.intersect1d(update.step, gradient.step, return_indices=True)
    zero, without = update.value[ours], gradient.value[theirs]
    there = without < 0.9  # where hardly any element has a gradient nothing can be told
    if there.sum() < limit.windows:
        return None
    return median((zero - without)[there] / (1 - without[there]))


RULE = Rule(
    "update-below-precision",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "event.groups",
        "parameter.dtype",
        "parameter.elements",
        "parameter.groups",
        "scalar.lr",
        "series.@loop.forwards.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loop.skipped_steps.mean",
        "series.param_grads.zero_share",
        "series.updates.zero_share",
    ),
    defaults=Thresholds(),
)
