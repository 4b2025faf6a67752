"""Parameters that get gradients and that no optimizer holds, given to the first one that steps.

They take part from the second step on: the gradients of the first may be neither unscaled nor
clipped. Cannot be applied to L-BFGS, which knows its parameters from the start, and where
parameters are made anew in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.process.optimizers import objects_by_age, with_subclasses
from nethook.running.detecting.discover import parameters_of, take_census
from nethook.running.trying.change import Change
from nethook.running.trying.limits import around_steps
from nethook.runs.reading.run import Run

CODES: Final = ("optimizer-misses-parameters", "unregistered-layers", "stale-optimizer")
_STEPS: Final = 3
"""Steps before which parameters are looked for: looking through all objects takes its time."""


def propose(finding: Mapping[str, Any], run: Run) -> Change | None:
    """All of them in the optimizer."""
    code = str(finding.get("code"))
    return Change("missing_parameters", code, "the optimizer given all parameters with a gradient")


def apply(change: Change, hooks: Attachment, done: Callable[[], None]) -> None:
    """At the first steps."""
    looked = 0

    def before(optimizer: Any) -> None:
        nonlocal looked
        if looked < _STEPS and not isinstance(optimizer, torch.optim.LBFGS):
            looked += 1
            missing = _missing()
            for parameter in missing:
                parameter.grad = None
            # No group of their own: schedulers have counted the groups.
            optimizer.param_groups[0]["params"].extend(missing)
            if missing:
                done()

    around_steps(hooks, before)


def _missing() -> list[nn.Parameter]:
    """The parameters in this process with a gradient that no optimizer holds, oldest first."""
    held = {id(p) for optimizer in take_census().optimizers for p in parameters_of(optimizer)}
    return [
        parameter
        for parameter in objects_by_age(with_subclasses(nn.Parameter))
        if parameter.requires_grad and parameter.grad is not None and id(parameter) not in held
    ]
