"""Every step of every optimizer, and the optimizers that there are."""

from __future__ import annotations

import gc
from collections.abc import Callable, Container, Iterable
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
    alive = objects_by_age(with_subclasses(torch.optim.Optimizer))
    return [optimizer for optimizer in alive if holds(optimizer, wanted)]


def of_kinds(things: list[Any], kinds: set[type]) -> list[Any]:
    """The objects in a list that are of exactly these classes."""
    return [thing for thing in things if type(thing) in kinds]


def objects_by_age(
    kinds: set[type], pick: Callable[[list[Any], set[type]], list[Any]] = of_kinds
) -> list[Any]:  # fmt: skip
    """The objects of exactly these classes that Python keeps account of, oldest first.

    `pick` is what does as `of_kinds` does: the native kernel's function, for who may ask it.

    `gc.get_objects()` lists the youngest generation first: two optimizers that were made one after
    the other may stand there in either order.
    """
    # A collection in between moves objects to an older generation: listed from the youngest on,
    # they are met twice, and the other way round they would be missed. Nor is there a list that
    # holds these three while they are made: it would be in one of them, and the circle would keep
    # every object of the process until the next collection, and make that one slow.
    young, middle, old = gc.get_objects(0), gc.get_objects(1), gc.get_objects(2)
    found = pick(old, kinds) + pick(middle, kinds) + pick(young, kinds)
    return list({id(thing): thing for thing in found}.values())


def with_subclasses(kind: type) -> set[type]:
    """A class, and all classes that are derived from it."""
    kinds, waiting = set[type](), [kind]
    while waiting:
        subclass = waiting.pop()
        if subclass not in kinds:
            kinds.add(subclass)
            waiting += type.__subclasses__(subclass)
    return kinds


def holds(optimizer: torch.optim.Optimizer, wanted: Container[int]) -> bool:
    """Whether an optimizer has a parameter whose id is among these."""
    groups = getattr(optimizer, "param_groups", None) or ()
    return any(id(parameter) in wanted for group in groups for parameter in group["params"])
