"""A module is never called, and none of its parameters gets a gradient.

Cause: a layer that was built and forgotten in the forward.
Evidence: calls and gradients, over the whole run.
Fix: use it, or take it out.
Silent: for modules whose parameters are used without a call (an embedding through its `.weight`,
the projection of an attention), for containers, and for what has no parameters. It is information.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import some
from nethook.doctor.rule import Cause, Rule


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 5


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every such module."""
    if history.steps < limit.steps:
        return
    fed = {parameter.address for parameter in history.parameters if parameter.fact("with_grad", 0)}
    trained = {
        parameter.address for parameter in history.parameters if parameter.fact("requires_grad")
    }
    # Of a model without an optimizer, gradients are not looked at.
    looked = {
        parameter.address
        for parameter in history.parameters
        if parameter.fact("steps", 0) >= limit.steps
    }
    idle = []
    for module in history.modules:
        own = set(module.fact("parameters", []))
        called = module.fact("first_call") is not None
        if module.fact("leaf") and own & trained & looked and not called and not own & fed:
            idle.append(module.address)
    if not idle:
        return
    yield Finding(
        "unused-module",
        "info",
        f"{some(idle, 'module')} {'was' if len(idle) == 1 else 'were'} never called in "
        f"{history.steps} steps, and no gradient came to {'its' if len(idle) == 1 else 'their'} "
        "parameters.",
        f"Call {'it' if len(idle) == 1 else 'them'} in the forward, or take "
        f"{'it' if len(idle) == 1 else 'them'} out of the model.",
        sites=tuple(idle),
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={"modules that were never called": Evidence(len(idle), 1)},
    )


RULE = Rule(
    "unused-module",
    Cause.SYMPTOM,
    look,
    reads=(
        "module.first_call",
        "module.leaf",
        "module.parameters",
        "parameter.requires_grad",
        "parameter.steps",
        "parameter.with_grad",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
