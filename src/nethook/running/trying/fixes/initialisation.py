"""A start that keeps the scale of the signal, or that tells units apart, at the first call.

The plan is that of `nethook.init`, made with the first inputs; random numbers are those of the
script afterwards. Cannot be applied to a model that cannot be planned (a scripted one, or one whose
forward needs more than its inputs), and to one that was trained before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.hooks.attachment import Attachment
from nethook.hooks.process.discovery import undiscovered
from nethook.running.detecting.discover import take_census, trainees
from nethook.running.trying.change import Change
from nethook.running.trying.limits import around_steps, wrap
from nethook.runs.reading.run import Run

CODES: Final = ("bad-init-scale", "symmetric-init")
_SEED: Final = 0


def propose(finding: Mapping[str, Any], run: Run) -> Change | None:
    """The start of `nethook.init`."""
    code = str(finding.get("code"))
    return Change("initialisation", code, "weights started by nethook.init.apply_")


def apply(change: Change, hooks: Attachment, done: Callable[[], None]) -> None:
    """At the first call of each model that is trained, before any step."""
    started: set[int] = set()
    stepped = False

    def called(original: Any, module: nn.Module, *args: Any, **named: Any) -> Any:
        if not stepped and id(module) not in started and torch.is_grad_enabled():
            started.add(id(module))
            if any(root is module for root in trainees(take_census(), module, set())):
                started.update(id(member) for member in module.modules())
                _start(module, Inputs(args, named))
                done()
        return original(module, *args, **named)

    def step(_: Any) -> None:
        nonlocal stepped
        stepped = True

    # Not a hook before every forward: those are not told of keyword arguments.
    wrap(hooks, "torch.nn.modules.module.Module", "__call__", called)
    around_steps(hooks, step)


def _start(model: nn.Module, inputs: Inputs) -> None:
    from nethook.init.plans.apply import apply_
    from nethook.init.plans.planner import plan

    with undiscovered(), torch.random.fork_rng():
        apply_(model, plan(model, inputs), generator=_SEED)
