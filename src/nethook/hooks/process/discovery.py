"""Meeting models that nobody has named: the first call of a module, before its forward runs.

One global hook is called for every module while it is on, and one for every backward pass; they are
taken off as soon as they are not needed. Two quiet ones, which cost nothing while a model trains,
say when they may be needed again: a module was given a parameter, or an optimizer stepped.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import WhenCompiling, without_warning_of_global_hooks
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import (
    GLOBAL_HOOKS,
    forward_pre_hooks_of,
    is_tracing,
    pre_hooks_with_kwargs_of,
)

# Global as every `ContextVar` is, and of the context: another thread may train meanwhile.
_undiscovered: ContextVar[bool] = ContextVar("nethook.undiscovered", default=False)


@contextmanager
def undiscovered() -> Iterator[None]:
    """A block in which calls and steps are not noticed: those of copies that we experiment on."""
    token = _undiscovered.set(True)
    try:
        yield
    finally:
        _undiscovered.reset(token)


class Discovery:
    """Calls back when a module is called while on, and when a new model may be on its way.

    Arguments:
        owner: the name under which `audit` lists the hooks.
        called: `called(module, args)`, before the forward of every module that is called while on.
        stepped: `stepped(optimizer)`, before a step of any optimizer.
        built: `built()`, when a module was given a parameter.
        passed: `passed(roots)`, before every backward pass while `on`; None: nobody asks.
    """

    def __init__(
        self,
        owner: str,
        *,
        called: Callable[[nn.Module, Any], None],
        stepped: Callable[[Optimizer], None],
        built: Callable[[], None],
        passed: Callable[[list[torch.Tensor]], None] | None = None,
    ) -> None:
        self._name = owner
        self._called = called
        self._passed = passed
        self._calls: Attachment | None = None
        self._signs = Attachment(Owner(owner))
        self._signs.add(register_optimizer_step_pre_hook(_Step(self._signs.owner, stepped)))
        self._signs.add(
            module_hooks.register_module_parameter_registration_hook(
                _Built(self._signs.owner, built)
            )
        )

    @property
    def on(self) -> bool:
        """Whether calls of modules are seen now."""
        return self._calls is not None

    def turn_on(self) -> None:
        """See the calls of modules from now on."""
        if self._calls is None:
            self._calls = Attachment(Owner(self._name))
            hook = _Call(self._calls.owner, self._called)
            self._calls.every_forward_pre(hook)
            if self._passed is not None:
                passes = _Pass(self._calls.owner, self._passed)
                self._calls.add(WrappedFunction("torch.autograd", "backward", passes))
            without_warning_of_global_hooks(self._calls)

    def see_compiling(self, compiling: Callable[[], None]) -> None:
        """Calls `compiling()`, while on, before torch compiles anything.

        A module that a compiled function calls is never called outside it.
        """
        this = weakref.ref(self)

        def start() -> None:
            discovery = this()
            if discovery is not None and discovery.on:
                compiling()

        self._signs.add(WhenCompiling(start))

    def turn_off(self) -> None:
        """See no more calls."""
        if self._calls is not None:
            self._calls.remove()
            self._calls = None

    def remove(self) -> None:
        """Take everything off."""
        self.turn_off()
        self._signs.remove()


class _Call(Hook):
    __slots__ = ("_called",)

    def __init__(self, owner: Owner, called: Callable[[nn.Module, Any], None]) -> None:
        super().__init__(owner, "*")
        self._called = called

    def __call__(self, module: nn.Module, args: Any) -> None:
        # Where a compiled function calls the module, this line is traced and folded away. A
        # hook that was taken off during a call is still called for the rest of it.
        if torch.compiler.is_compiling():
            return
        if self.owner.alive and not _undiscovered.get() and not is_tracing():
            before = _pre_hooks_of(module)
            self._called(module, args)
            _make_up_for(module, args, before)


def _pre_hooks_of(module: nn.Module) -> dict[int, Any]:
    return {**GLOBAL_HOOKS["global_forward_pre"], **forward_pre_hooks_of(module)}


def _make_up_for(module: nn.Module, args: Any, before: dict[int, Any]) -> None:
    """Calls those of our hooks that were put on just now: torch has its list of them already."""
    new = {key: hook for key, hook in _pre_hooks_of(module).items() if key not in before}
    # Global hooks are not told of keyword arguments. The frame that calls them has them.
    caller = sys._getframe(2)
    kwargs = caller.f_locals.get("kwargs", {}) if caller.f_code.co_name == "inner" else {}
    for key, hook in new.items():
        if isinstance(hook, Hook):
            if key in pre_hooks_with_kwargs_of(module):
                hook(module, args, kwargs)
            else:
                hook(module, args)


class _Pass(Hook):
    __slots__ = ("_passed",)

    def __init__(self, owner: Owner, passed: Callable[[list[torch.Tensor]], None]) -> None:
        super().__init__(owner, "*")
        self._passed = passed

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.owner.alive and not _undiscovered.get():
            given = args[0] if args else kwargs.get("tensors")
            roots = [given] if isinstance(given, torch.Tensor) else list(given or ())
            self._passed([root for root in roots if isinstance(root, torch.Tensor)])
        return function(*args, **kwargs)


class _Step(Hook):
    __slots__ = ("_stepped",)

    def __init__(self, owner: Owner, stepped: Callable[[Optimizer], None]) -> None:
        super().__init__(owner, "*")
        self._stepped = stepped

    def __call__(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling() and not _undiscovered.get():
            self._stepped(optimizer)


class _Built(Hook):
    __slots__ = ("_built",)

    def __init__(self, owner: Owner, built: Callable[[], None]) -> None:
        super().__init__(owner, "*")
        self._built = built

    def __call__(self, module: nn.Module, name: str, parameter: Any) -> None:
        if not torch.compiler.is_compiling():
            self._built()
