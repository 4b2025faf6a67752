"""Every step of every optimizer, and the optimizers that there are."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook


def on_every_step(hooks: Attachment, before: Hook, after: Hook) -> None:
    """`before(optimizer, args, kwargs)` and `after(…)` around each step of any optimizer.

    What `before` returns, if anything, takes the place of `(args, kwargs)`.
    """
    hooks.add(register_optimizer_step_pre_hook(before))
    hooks.add(register_optimizer_step_post_hook(after))


def optimizers_holding(parameters: Iterable[torch.Tensor]) -> list[torch.optim.Optimizer]:
    """The optimizers in this process that hold any of these parameters, oldest first.

    Looks through all objects that Python keeps account of: some tens of milliseconds.
    """
    wanted = {id(parameter) for parameter in parameters}
    return [
        each
        for each in gc.get_objects()
        if issubclass(type(each), torch.optim.Optimizer) and holds(each, wanted)
    ]


def holds(optimizer: torch.optim.Optimizer, wanted: set[int]) -> bool:
    """Whether an optimizer has a parameter whose id is among these."""
    groups = getattr(optimizer, "param_groups", None) or ()
    return any(id(parameter) in wanted for group in groups for parameter in group["params"])
