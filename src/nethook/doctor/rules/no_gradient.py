"""Parameters are used in the forward, and no gradient ever arrives.

Cause: a `.detach()`, `.data`, `torch.no_grad()` or a conversion to numpy cut the graph, or
`requires_grad=False` was set by accident.
Evidence: the module was called in training, its parameters never had a gradient, an optimizer has
them, and other parameters did get gradients.
Fix: find what cuts the graph behind the named layer.
Silent: for parameters that no optimizer has, for frozen layers before those that learn (a backbone)
where the run does learn, for modules that were not called (`unused-module`), for experts that are
idle, for gradients that are sparse, and for whole models without gradients, which another rule
explains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 5  # steps without a gradient
    called: float = 0.5  # of the steps in which its module was called


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every parameter that is cut off."""
    parameters = history.parameters
    fed = [parameter for parameter in parameters if parameter.fact("with_grad", 0) > 0]
    if not fed:
        return
    calls = {module.address: _training_calls(module) for module in history.modules}
    cut = [parameter for parameter in parameters if _is_cut_off(parameter, calls, limit)]
    if not cut:
        return
    frozen = [parameter for parameter in cut if parameter.fact("requires_grad") is False]
    if frozen and _is_frozen_on_purpose(history, frozen, fed):
        cut = [parameter for parameter in cut if parameter.fact("requires_grad") is not False]
        frozen = []
    if not cut:
        return
    sites = tuple(parameter.address for parameter in cut)
    steps = max(int(parameter.fact("steps", 0)) for parameter in cut)
    if len(frozen) == len(cut):
        why = "although the optimizer has them: requires_grad is False"
        fix = "Set requires_grad_(True) on them, or leave them out of the optimizer."
    else:
        why = "although the layers were called: the graph is cut behind them"
        fix = (
            "Look for .detach(), .data, .numpy(), .item(), torch.tensor(...) or torch.no_grad() "
            f"between {_owner(cut[-1])} and the loss."
        )
    yield Finding(
        "no-gradient",
        "error",
        f"{some(sites, 'parameter')} never got a gradient in {steps} steps, {why}.",
        fix,
        sites=sites,
        first_step=0,
        last_step=history.steps - 1,
        evidence={
            "steps without a gradient": Evidence(steps, limit.steps),
            "parameters with gradients": Evidence(len(fed)),
        },
    )


def _is_cut_off(parameter: SiteFacts, calls: dict[str, int], limit: Thresholds) -> bool:
    steps = int(parameter.fact("steps", 0))
    if parameter.fact("with_grad", 0) > 0 or steps < limit.steps:
        return False
    # What moves is moved by a gradient, of a kind that is not counted (a sparse one).
    if (parameter.fact("moved") or [0])[0] > 0:
        return False
    # Out of every optimizer is left alone on purpose; in one, somebody wants it to learn.
    if not parameter.fact("groups"):
        return False
    owners = parameter.fact("owners", [])
    return any(calls.get(owner, 0) >= limit.called * steps for owner in owners)


def _is_frozen_on_purpose(history: History, frozen: list[SiteFacts], fed: list[SiteFacts]) -> bool:
    """Whether what is frozen lies before all that learns, in a run that learns: a backbone."""
    calls = {
        module.address: int(module.fact("first_call"))
        for module in history.modules
        if module.fact("first_call") is not None
    }
    orders = [
        [
            calls[owner]
            for parameter in group
            for owner in parameter.fact("owners", [])
            if owner in calls
        ]
        for group in (frozen, fed)
    ]
    went = progress(history)
    learns = went is None or went.improves
    return learns and all(orders) and max(orders[0]) < max(orders[1])


def _training_calls(module: SiteFacts) -> int:
    calls = module.fact("calls", {})
    return int(calls.get("train", 0)) if isinstance(calls, dict) else 0


def _owner(parameter: SiteFacts) -> str:
    owners = parameter.fact("owners", [])
    return f"`{owners[0]}`" if owners and owners[0] else f"`{parameter.address}`"


RULE = Rule(
    "no-gradient",
    Cause.LOOP,
    look,
    reads=(
        *PROGRESS_READS,
        "module.calls",
        "module.first_call",
        "parameter.groups",
        "parameter.moved",
        "parameter.owners",
        "parameter.requires_grad",
        "parameter.steps",
        "parameter.with_grad",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
