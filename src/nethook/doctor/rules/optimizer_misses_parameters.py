"""Parameters are used and get gradients, and never move, because no optimizer has them.

Cause: the optimizer was made with a part of the parameters, or before the model was changed.
Evidence: a gradient arrived, the weights did not change in any step that was measured, and no
group of an optimizer that steps has the parameter.
Fix: give the optimizer all parameters that are to be trained.
Silent: for parameters frozen on purpose (`requires_grad=False`, even where a gradient of before is
still there), and for those that other code moves (a momentum teacher).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import one_or_many, some
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import OPTIMIZER_STEPS


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 3  # steps with a gradient


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every parameter that is missed."""
    if not history.loop(OPTIMIZER_STEPS).total:
        return  # nothing moves at all: `missing-step`
    missed = [parameter for parameter in history.parameters if _is_missed(parameter, limit)]
    if not missed:
        return
    elements = sum(int(parameter.fact("elements", 0)) for parameter in missed)
    everything = sum(int(parameter.fact("elements", 0)) for parameter in history.parameters)
    sites = tuple(parameter.address for parameter in missed)
    yield Finding(
        "optimizer-misses-parameters",
        "error",
        f"{some(sites, 'parameter')} {one_or_many(sites, 'gets', 'get')} gradients and never "
        f"{one_or_many(sites, 'moves', 'move')}: no optimizer holds them. That is {elements:,} of "
        f"{everything:,} weights.",
        "Make the optimizer with all of them, optimizer = Optimizer(model.parameters(), …), after "
        "the model is complete; or freeze them with requires_grad_(False) if that is meant.",
        sites=sites,
        first_step=0,
        last_step=history.steps - 1,
        evidence={"parameters without an optimizer": Evidence(len(missed), 1)},
    )


def _is_missed(parameter: SiteFacts, limit: Thresholds) -> bool:
    moved, measured = (parameter.fact("moved") or [0, 0])[:2]
    return (
        not parameter.fact("groups")
        # Frozen: a gradient that is there is one of before.
        and parameter.fact("requires_grad") is not False
        and parameter.fact("with_grad", 0) >= limit.steps
        and measured > 0
        and moved == 0
    )


RULE = Rule(
    "optimizer-misses-parameters",
    Cause.LOOP,
    look,
    reads=(
        "parameter.elements",
        "parameter.groups",
        "parameter.moved",
        "parameter.requires_grad",
        "parameter.with_grad",
        "series.@loop.forwards.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
