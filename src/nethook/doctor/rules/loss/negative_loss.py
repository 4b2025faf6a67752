"""A loss that has a floor is maximised.

Cause: a sign too many: `-criterion(...)`, or an optimizer with `maximize=True`.
Evidence: a negation between a loss that cannot be below zero and what `backward` was called on, and
its value below zero and falling; or that option in every group of every optimizer.
Fix: leave the sign out.
Silent: for losses that are rightly negative (Wasserstein critics, log densities, policy gradients,
cosine), and for sums in which one term is negated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import GROUPS


class Thresholds(NamedTuple):
    """What may be changed."""

    records: float = 2  # losses that were made so


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    records = history.records("train")
    bad = [
        record
        for record in records
        if record.fact("kind") in _FLOORED and record.fact("value", 0) < 0
    ]
    bad = [record for record in bad if record.fact("negated")]
    if len(bad) < min(limit.records, len(records)) or len(bad) < 0.5 * len(records) or not bad:
        yield from _maximised(history, limit)
        return
    first, last = bad[0], bad[-1]
    kind = first.fact("kind")
    where = source_line(first.fact("source"))
    yield Finding(
        "negative-loss",
        "error",
        f"{kind} cannot be below zero, and its negation is minimised{where}: the loss went from "
        f"{first.fact('value'):.3g} to {last.fact('value'):.3g}, so the error grows.",
        f"Leave the minus sign out: loss = {kind}(...).",
        first_step=first.step,
        last_step=last.step,
        evidence={"value of the loss": Evidence(float(last.fact("value")), 0.0)},
        lines=file_and_line(first.fact("source")),
    )


def _maximised(history: History, limit: Thresholds) -> Iterator[Finding]:
    """The same by an option: every group of every optimizer climbs."""
    groups = [
        group
        for event in history.events(GROUPS)
        for group in event.data.get("groups") or []
        if isinstance(group, dict)
    ]
    records = [record for record in history.records("train") if record.fact("kind") in _FLOORED]
    upwards = bool(groups) and all(group.get("maximize") for group in groups)
    if (
        not upwards
        or len(records) < limit.records
        or any(record.fact("negated") for record in records)
    ):
        return
    first, last = records[0], records[-1]
    yield Finding(
        "negative-loss",
        "error",
        f"the optimizer was told to maximise (maximize=True), and {first.fact('kind')}"
        f"{source_line(first.fact('source'))} is an error: it went from "
        f"{first.fact('value', 0):.3g} to {last.fact('value', 0):.3g}.",
        "Leave maximize=True out.",
        first_step=first.step,
        last_step=last.step,
        evidence={"value of the loss": Evidence(float(last.fact("value", 0)), 0.0)},
        lines=file_and_line(first.fact("source")),
    )


_FLOORED = (
    "cross_entropy", "nll", "mse", "l1", "smooth_l1", "huber", "bce", "bce_with_logits", "kl_div",
    "ctc", "hinge_embedding", "margin_ranking", "triplet_margin", "multi_margin",
)  # fmt: skip


RULE = Rule(
    "negative-loss",
    Cause.LOSS,
    look,
    reads=(
        "event.groups",
        "loss.kind",
        "loss.negated",
        "loss.source",
        "loss.value",
    ),
    defaults=Thresholds(),
)
