"""Ranks hold different weights.

Cause: a model that was not wrapped, seeds or checkpoints that differ, an optimizer step on one rank
only.
Evidence: the fingerprint of the parameters, rank by rank, at the same steps.
Fix: wrap the model in DistributedDataParallel, or load the same weights everywhere.
Silent: for runs with one rank, for parameters of which every rank holds another part, and for
steps that not all ranks have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Curve, History
from nethook.doctor.rule import Cause, Rule


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 2  # at which they differ


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    for ranks in history.fingerprints().values():
        differ = _differ(ranks, limit)
        if differ:
            yield _finding(ranks, differ, limit)
            return


def _differ(ranks: dict[int, Curve], limit: Thresholds) -> list[int]:
    """The steps at which ranks differ, where they still do at the end."""
    if len(ranks) < 2:
        return []
    values: dict[int, dict[int, float]] = {}
    for rank, curve in ranks.items():
        for step, value in zip(curve.step.tolist(), curve.value.tolist(), strict=True):
            values.setdefault(step, {})[rank] = value
    common = {step: by_rank for step, by_rank in values.items() if len(by_rank) == len(ranks)}
    differ = sorted(step for step, by_rank in common.items() if len(set(by_rank.values())) > 1)
    if len(differ) < limit.steps or differ[-1] != max(common):
        return []
    return differ


def _finding(ranks: dict[int, Curve], differ: list[int], limit: Thresholds) -> Finding:
    return Finding(
        "replica-divergence",
        "error",
        f"the {len(ranks)} ranks hold different weights since step {differ[0]}.",
        "Wrap the model in DistributedDataParallel before training, seed all ranks alike, and load "
        "checkpoints on every rank.",
        first_step=differ[0],
        last_step=differ[-1],
        evidence={"steps at which ranks differ": Evidence(len(differ), limit.steps)},
    )


RULE = Rule(
    "replica-divergence",
    Cause.LOOP,
    look,
    reads=("scalar.params_fingerprint",),
    defaults=Thresholds(),
)
