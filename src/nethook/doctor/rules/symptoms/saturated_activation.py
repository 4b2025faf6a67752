"""Sigmoid or tanh units are stuck at their ends.

Cause: inputs or weights that are far too large for the layer before.
Evidence: the share of outputs within 3 % of either end, over the second half of the run.
Fix: normalised inputs, another initialisation, a lower rate.
Silent: where the run does its job (gates near their ends are usual; with nearly all units at their
ends it has to do well), and for the last layer of the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import (
    NEAR_READS,
    activated_by,
    leaves,
    near_ends,
    saturated_layers,
)
from nethook.doctor.signals.onset import onset
from nethook.doctor.signals.progress import PROGRESS_READS, progress


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.8  # of the outputs of a layer
    beyond: float = 0.93  # from which on a run must do well, and not only its job


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every layer that is concerned."""
    went = progress(history)
    if went is None or went.does_well:
        return
    called = leaves(history)
    last = called[-1].address if called else None
    saturated = saturated_layers(history, limit.share)
    near = {address: share for address, share in saturated.items() if address != last}
    if not near:
        return
    worst = max(near, key=lambda address: near[address])
    if went.does_its_job and near[worst] < limit.beyond:
        return
    module = next(layer for layer in called if layer.address == worst)
    early = near_ends(history, module, activated_by(history))
    began = onset(early, early.value >= limit.share)
    yield Finding(
        "saturated-activation",
        "warning",
        f"`{worst}`: {near[worst]:.0%} of the outputs are within 3 % of an end, where the slope is "
        "next to nothing; what lies before it hardly learns.",
        "Normalise the inputs, start with smaller weights (nethook.init), lower the learning rate, "
        "or put a norm before the activation.",
        sites=tuple(near),
        first_step=max(history.first_step, history.steps // 2) if began is None else began,
        last_step=history.steps - 1,
        evidence={"share near the ends": Evidence(near[worst], limit.share)},
    )


RULE = Rule(
    "saturated-activation",
    Cause.SYMPTOM,
    look,
    reads=(
        *PROGRESS_READS,
        *NEAR_READS,
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
