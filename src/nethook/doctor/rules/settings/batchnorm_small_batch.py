"""Batch norm takes its statistics from one or two samples.

Cause: a batch size that is too small for batch statistics.
Evidence: the batch sizes that the norm has seen in training.
Fix: larger batches, or a norm that does not depend on them.
Silent: for norms that are frozen in eval mode, and for a short last batch of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import one_or_many, some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import leaves, mode_changes


class Thresholds(NamedTuple):
    """What may be changed."""

    size: float = 2


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every norm that sees too little."""
    norms = []
    since: list[int] = []
    for module in leaves(history):
        least, greatest = (module.fact("batch") or [0, 0])[:2]
        trains = any(training for _, training in mode_changes(module, "train"))
        if module.fact("activation") == "norm" and trains and 0 < greatest <= limit.size:
            norms.append((module.address, least, greatest))
            since += [step for step, training in mode_changes(module, "train") if training]
    if not norms:
        return
    sites = tuple(address for address, _, _ in norms)
    greatest = max(size for _, _, size in norms)
    yield Finding(
        "batchnorm-small-batch",
        "warning",
        f"{some(sites, 'norm')} {one_or_many(sites, 'takes', 'take')} mean and variance from "
        f"{greatest} {'sample' if greatest == 1 else 'samples'}: mostly noise.",
        "Use batches of 8 or more, nn.GroupNorm or nn.LayerNorm instead, or "
        "torch.nn.SyncBatchNorm across devices.",
        sites=sites,
        first_step=min(since),
        last_step=history.steps - 1,
        evidence={"largest batch": Evidence(greatest, limit.size)},
    )


RULE = Rule(
    "batchnorm-small-batch",
    Cause.SETTINGS,
    look,
    reads=(
        "module.activation",
        "module.batch",
        "module.first_call",
        "module.leaf",
        "module.modes",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
