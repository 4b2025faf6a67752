"""The optimizer steps on tensors that the model does not have any more.

Cause: layers were replaced, or the model was made anew, after the optimizer had been given its
parameters: it holds the old tensors, which no graph reaches.
Evidence: an optimizer that steps holds tensors that are in no graph and in no network (or that were
this model's and are not any more), while parameters that the model has now get gradients, are in no
optimizer, and stay what they are.
Fix: make the optimizer after the last change of the model, or add the new parameters to it.
Silent: where another optimizer has the new parameters, where other code moves them, and for
parameters in an optimizer that no graph reaches while all that gets gradients is in one: experts
that are idle, heads that are not used, the other network of two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import one_or_many, some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.graph import graph_of


class Thresholds(NamedTuple):
    """What may be changed."""

    orphans: float = 1  # tensors in an optimizer that are in no graph and no network


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    graph = graph_of(history)
    stale = [one for one in graph.stale if one.orphans >= limit.orphans]
    left = graph.registered
    if not stale or not left:
        return
    sites = tuple(one.where for one in left)
    orphans = sum(one.orphans for one in stale)
    held = sum(one.parameters for one in stale)
    since = min(one.since for one in left)
    made = f" ({stale[0].line})" if stale[0].line else ""
    yield Finding(
        "stale-optimizer",
        "error",
        f"{orphans} of the {held} tensors that {stale[0].kind}{made} steps on are not in the model "
        f"any more, and {some(sites, 'parameter')} {one_or_many(sites, 'gets', 'get')} gradients "
        "and no optimizer has them: the model was changed after its optimizer was made.",
        "Make the optimizer after the last change of the model, "
        f"optimizer = {stale[0].kind}(model.parameters(), …).",
        sites=sites,
        first_step=since,
        last_step=max(history.steps - 1, since),
        evidence={
            "tensors that are in no graph": Evidence(orphans, limit.orphans),
            "parameters without an optimizer": Evidence(len(left), 1),
        },
        lines=tuple(dict.fromkeys(one.line for one in stale if one.line)),
    )


RULE = Rule(
    "stale-optimizer",
    Cause.LOOP,
    look,
    reads=("info.graph", "series.@loop.forwards.mean", "series.@loss.loss.mean"),
    defaults=Thresholds(),
)
