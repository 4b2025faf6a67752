"""Answering a module's call: something else runs in the place of its forward.

Torch has no hook that can do this: one before a forward cannot keep it from running. Replacing
`forward` on the instance would be pickled and copied with the module. So the `forward` of the
module's class is wrapped for a while, and a call of any other module of the class passes straight
through. Nothing is written on a module, its class is the same, and hooks of others on the module
are called as always: around the answer.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from nethook.errors import EditError
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import forward_hooks_of

_is_compiling = torch.compiler.is_compiling


class Answers:
    """A handle: hooks that answer calls of modules in the place of their forward.

        answers = Answers(hooks.owner)
        hooks.add(answers)
        answers.put_on(module, hook)

    A hook is called as `hook(module, args, kwargs, run)` and returns what the call returns;
    `run(*args, **kwargs)` is the forward of the module. A module has one hook of an owner's.
    """

    __slots__ = ("_by_class", "_handles", "_owner")

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._by_class: dict[type, AnsweringClass] = {}
        self._handles: list[WrappedFunction] = []

    def put_on(self, module: nn.Module, hook: Hook) -> None:
        """Answers the calls of one module from now on."""
        holder = _class_of_forward(module, hook.address)
        answering = self._by_class.get(holder)
        if answering is None:
            answering = self._by_class[holder] = AnsweringClass(self._owner, holder.__qualname__)
            self._handles.append(WrappedFunction(holder, "forward", answering, on=False))
            self._handles[-1].put_on()
        answering.add(module, hook)

    def remove(self) -> None:
        """Modules run their own forward again. A second call does nothing."""
        while self._handles:
            self._handles[-1].remove()
            self._handles.pop()


class AnsweringClass(Hook):
    """Stands around the `forward` of a class, and answers for some of its modules."""

    __slots__ = ("_answered", "_taken")

    def __init__(self, owner: Owner, address: str) -> None:
        super().__init__(owner, address)
        # By the id of the module's dict of hooks: replicas of nn.DataParallel share that.
        self._answered: dict[int, tuple[weakref.ref[nn.Module], Hook]] = {}
        self._taken: list[set[int]] = []  # ids of modules whose calls are not answered now

    def add(self, module: nn.Module, hook: Hook) -> None:
        """Answers the calls of a module."""
        self._answered[id(forward_hooks_of(module))] = (weakref.ref(module), hook)

    def __call__(
        self, forward: Callable[..., Any], module: Any, /, *args: Any, **kwargs: Any
    ) -> Any:
        """What the hook of the module answers; for any other module, its forward."""
        hook = None if _is_compiling() else self._hook_of(module)
        if hook is None:
            return forward(module, *args, **kwargs)
        return hook(module, args, kwargs, functools.partial(forward, module))

    def _hook_of(self, module: Any) -> Hook | None:
        if not isinstance(module, nn.Module):
            return None
        table = forward_hooks_of(module)
        entry = self._answered.get(id(table))
        if entry is None:
            return None
        original = entry[0]()
        if original is None or forward_hooks_of(original) is not table:
            return None
        if self._taken and any(id(original) in modules for modules in self._taken):
            return None
        return entry[1]

    def taps(self) -> Iterator[tuple[nn.Module, Hook]]:
        """The modules that are answered for, each with its hook."""
        for ref, hook in self._answered.values():
            module = ref()
            if module is not None:
                yield module, hook

    def take(self, modules: set[int]) -> Callable[[], None]:
        """Lets modules with these ids run; the function returned ends that."""
        self._taken.append(modules)
        return lambda: self._taken.remove(modules)


def why_unanswerable(module: nn.Module) -> str | None:
    """Why the calls of a module cannot be answered; None where they can."""
    if isinstance(module, torch.jit.ScriptModule):
        return "it is a ScriptModule, whose forward is no Python function"
    if "forward" in vars(module):
        return "its forward was replaced on the instance, so that of its class is never called"
    holder = next((cls for cls in type(module).__mro__ if "forward" in vars(cls)), None)
    forward = None if holder is None else vars(holder)["forward"]
    if holder is None or holder is nn.Module or not hasattr(forward, "__get__"):
        return "its class has no method forward"
    return None


def _class_of_forward(module: nn.Module, address: str) -> type:
    why = why_unanswerable(module)
    if why is not None:
        raise EditError(
            f"the calls of {address!r} cannot be answered: {why}. Change what it returns instead: "
            f"outputs={{{address!r}: ...}}."
        )
    return next(cls for cls in type(module).__mro__ if "forward" in vars(cls))
