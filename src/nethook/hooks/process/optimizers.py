"""Every step of every optimizer, and the optimizers that there are."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import WhenCompiling
from nethook.hooks.hook import Hook

_WHY: Final = (
    "nethook follows the steps of optimizers, which it cannot do inside a graph: compile the step "
    "without fullgraph=True, or close the watch"
)


def on_every_step(hooks: Attachment, before: Hook, after: Hook) -> None:
    """`before(optimizer, args, kwargs)` and `after(…)` around each step of any optimizer.

    What `before` returns, if anything, takes the place of `(args, kwargs)`. Where the step itself
    is compiled, its graph ends before each of them and goes on behind it.
    """
    for register, hook in (
        (register_optimizer_step_pre_hook, before),
        (register_optimizer_step_post_hook, after),
    ):
        handle = register(hook)
        hooks.add(handle)
        hooks.add(WhenCompiling(partial(_leave_alone, handle, hook)))


def _leave_alone(handle: RemovableHandle, hook: Hook) -> None:
    """Now that something is compiled: puts in the place of a hook one that is not."""
    hooks = handle.hooks_dict_ref()
    if hooks is not None and hooks.get(handle.id) is hook:
        hooks[handle.id] = _Uncompiled(hook)


class _Uncompiled(Hook):
    """A hook that is called as it is, also from code that is compiled."""

    __slots__ = ("_call",)

    def __init__(self, hook: Hook) -> None:
        super().__init__(hook.owner, hook.address)
        self._call: Any = torch.compiler.disable(hook.__call__, reason=_WHY)

    def __call__(self, *given: Any) -> Any:
        """Calls the hook."""
        return self._call(*given)


def optimizers_holding(parameters: Iterable[torch.Tensor]) -> list[torch.optim.Optimizer]:
    """The optimizers in this process that hold any of these parameters, oldest first.

    Looks through all objects that Python keeps account of: tens of milliseconds.
    """
    wanted = {id(parameter) for parameter in parameters}
    return [
        thing
        for thing in objects_by_age()
        if issubclass(type(thing), torch.optim.Optimizer) and holds(thing, wanted)
    ]


def objects_by_age() -> list[Any]:
    """All objects that Python keeps account of, oldest first.

    `gc.get_objects()` lists the youngest generation first: two optimizers that were made one after
    the other may stand there in either order.
    """
    return [thing for generation in (2, 1, 0) for thing in gc.get_objects(generation)]


def holds(optimizer: torch.optim.Optimizer, wanted: set[int]) -> bool:
    """Whether an optimizer has a parameter whose id is among these."""
    groups = getattr(optimizer, "param_groups", None) or ()
    return any(id(parameter) in wanted for group in groups for parameter in group["params"])
