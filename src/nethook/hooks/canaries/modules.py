"""Canaries of modules, of their parts and their tables of hooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from nethook import torch_private as private
from nethook.hooks.canaries.registry import Canary, canary
from nethook.private_names import look_up


class _Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = self.two = nn.Linear(2, 2)
        self.none: nn.Module | None
        self.register_module("none", None)
        self.register_buffer("kept", torch.ones(1))
        self.register_buffer("passing", torch.ones(1), persistent=False)
        self.register_parameter("bias", None)

    def forward(self, x: Tensor) -> Tensor:
        _callers.append(sys._getframe(1))
        return x


# The frames that called `_Odd.forward`; read and emptied by `_call`.
_callers: list[FrameType] = []


@canary(
    "torch.nn.Module._modules",
    "torch.nn.Module._parameters",
    "torch.nn.Module._buffers",
    "torch.nn.Module._non_persistent_buffers_set",
)
def _parts() -> bool:
    module = _Odd()
    return (
        list(private.children_of(module)) == ["one", "two", "none"]
        and private.parameters_of(module) == {"bias": None}
        and list(private.buffers_of(module)) == ["kept", "passing"]
        and vars(module)[private.NOT_SAVED] == {"passing"}
        and all(attribute in vars(module) for attribute in private.HOLD_PARTS)
    )


@canary("torch.nn.Module._compiled_call_impl")
def _compiled_call() -> bool:
    module = nn.Identity()
    before = private.compiled_call_of(module)
    setattr(module, private.COMPILED_CALL, lambda _: "compiled")
    return before is None and module(torch.ones(1)) == "compiled"


@canary("torch.nn.Module._call_impl")
def _call() -> bool:
    _callers.clear()
    _Odd()(torch.ones(1))
    frame = _callers.pop()
    return frame.f_code is private.CALL and isinstance(frame.f_locals.get("self"), _Odd)


@canary("torch.nn.Module._is_full_backward_hook")
def _full_backward() -> bool:
    return private.FULL_BACKWARD in vars(nn.Linear(2, 2))


@canary("torch.nn.Module._replicate_for_data_parallel")
def _replica() -> bool:
    module: Any = nn.Linear(2, 2)
    twin = look_up("torch.nn.Module._replicate_for_data_parallel")(module)
    return bool(vars(twin).get(private.REPLICA)) and private.REPLICA not in vars(module)


@canary(
    "torch.nn.modules.batchnorm._BatchNorm",
    "torch.nn.modules.instancenorm._InstanceNorm",
    "torch.nn.modules.dropout._DropoutNd",
)
def _classes() -> bool:
    return (
        all(isinstance(norm(2), private.BatchNorms) for norm in (nn.BatchNorm1d, nn.SyncBatchNorm))
        and isinstance(nn.InstanceNorm2d(2), private.InstanceNorms)
        and isinstance(nn.AlphaDropout(), private.Dropouts)
        and not isinstance(nn.LayerNorm(2), private.BatchNorms)
    )


def _called(put_on: Callable[[Any, Any], None], kind: str) -> bool:
    """Whether a hook in a module's dict of one kind is called when torch calls such hooks."""
    module, seen = nn.Linear(2, 2), []

    def hook(*_: Any, **__: Any) -> None:
        seen.append(kind)

    put_on(module, hook)
    with torch.enable_grad():
        if "state_dict" in kind:
            state = module.state_dict()
            module.load_state_dict(dict(state))
        else:
            module(torch.ones(1, 2, requires_grad=True)).sum().backward()
    return bool(seen)


def _hook_table(kind: str, attribute: str) -> Canary:
    def put_on(module: Any, hook: Any) -> None:
        if kind == "backward":
            setattr(module, private.FULL_BACKWARD, True)
        getattr(module, attribute)[10**9] = hook

    return lambda: _called(put_on, kind)


for _kind, _attribute in private.HOOKS_OF_MODULES.items():
    canary(f"torch.nn.Module.{_attribute}")(_hook_table(_kind, _attribute))


@canary("torch.nn.Module._forward_pre_hooks_with_kwargs")
def _pre_hooks_with_kwargs() -> bool:
    module, seen = nn.Identity(), []
    private.forward_pre_hooks_of(module)[10**9] = lambda *given: seen.append(len(given))
    private.pre_hooks_with_kwargs_of(module)[10**9] = True
    module(torch.ones(1))
    return seen == [3]


@canary(
    "torch.nn.Module._forward_hooks_with_kwargs", "torch.nn.Module._forward_hooks_always_called"
)
def _forward_options() -> bool:
    module: Any = nn.Linear(2, 2)
    seen: list[int] = []
    private.forward_hooks_of(module)[10**9] = lambda *given: seen.append(len(given))
    private.hooks_with_kwargs_of(module)[10**9] = True
    private.hooks_always_called_of(module)[10**9] = True
    module(torch.ones(1, 2))
    with suppress(TypeError):
        module("not a tensor")
    return seen == [4, 4]


@contextmanager
def _on(table: Any, hook: Callable[..., Any]) -> Iterator[None]:
    table[10**9] = hook
    try:
        yield
    finally:
        del table[10**9]


def _global_table(kind: str) -> Canary:
    def check() -> bool:
        seen: list[str] = []
        with _on(private.GLOBAL_HOOKS[kind], lambda *_, **__: seen.append(kind)):
            if "optimizer" in kind:
                weight = nn.Parameter(torch.ones(1))
                torch.optim.SGD([weight], lr=0.1).step()
            elif "backward" in kind:
                # Torch asks a flag of its own which of two kinds of backward hooks they are.
                return private.GLOBAL_HOOKS[kind] is look_up(
                    f"torch.nn.modules.module.{private.HOOKS_ON_ALL_MODULES[kind]}"
                )
            else:
                nn.BatchNorm1d(2).eval()(torch.ones(1, 2))
                nn.Sequential(nn.Identity())
        return bool(seen)

    return check


for _kind, _attribute in private.HOOKS_ON_ALL_MODULES.items():
    canary(f"torch.nn.modules.module.{_attribute}")(_global_table(_kind))
for _kind, _attribute in private.HOOKS_ON_ALL_OPTIMIZERS.items():
    canary(f"torch.optim.optimizer.{_attribute}")(_global_table(_kind))


@canary(*(f"torch.nn.modules.module.{name}" for name in private.OPTIONS_ON_ALL_MODULES))
def _global_options() -> bool:
    module: Any = nn.Linear(2, 2)
    seen: list[int] = []
    with (
        _on(private.GLOBAL_HOOKS["global_forward"], lambda *given: seen.append(len(given))),
        _on(private.global_with_kwargs, True),  # type: ignore[arg-type]
    ):
        module(torch.ones(1, 2))
    with (
        _on(private.GLOBAL_HOOKS["global_forward"], lambda *given: seen.append(len(given))),
        _on(private.global_always_called, True),  # type: ignore[arg-type]
        suppress(TypeError),
    ):
        module("not a tensor")
    return seen == [4, 3]


@canary("torch.nn.modules.module._has_any_global_hook")
def _any_global_hook() -> bool:
    with _on(private.GLOBAL_HOOKS["global_forward_pre"], lambda *_: None):
        return bool(private.any_global_hook())
