"""Canaries of what a thread is doing: backward passes, transforms, modes, switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nethook import torch_private as private
from nethook.hooks.canaries.registry import canary


class _InBackward(torch.autograd.Function):
    """The identity; its backward asks a question and keeps the answer."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, question: Callable[[], Any], answers: list[Any]) -> Tensor:
        ctx.question, ctx.answers = question, answers
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.answers.append(ctx.question())
        return grads[0], None, None


def _asked_in_backward(question: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    with torch.enable_grad():
        x = torch.ones(2, requires_grad=True)
        cast(Any, _InBackward).apply(x, question, answers).sum().backward()
    return answers[0]


@canary("torch._C._current_graph_task_id")
def _backward_id() -> bool:
    one, two = _asked_in_backward(private.backward_id), _asked_in_backward(private.backward_id)
    return private.backward_id() == -1 and one != -1 and one != two


def asked_in_vmap(question: Callable[[Tensor], Any]) -> Any:
    """The answer to a question that is asked of a value inside `torch.func.vmap`."""
    answers: list[Any] = []

    def inside(x: Tensor) -> Tensor:
        answers.append(question(x))
        return x

    torch.func.vmap(inside)(torch.ones(2))
    return answers[0]


@canary("torch._C._are_functorch_transforms_active")
def _in_transform() -> bool:
    return asked_in_vmap(lambda _: private.in_transform()) and not private.in_transform()


class _Mode(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


@canary("torch._C._len_torch_function_stack")
def _function_modes() -> bool:
    before = private.function_modes()
    with _Mode(), _Mode():
        return private.function_modes() == before + 2


@canary(
    "torch._C._push_on_torch_function_stack",
    "torch._C._pop_torch_function_stack",
    "torch._C._get_function_stack_at",
)
def _function_stack() -> bool:
    mode, before = _Mode(), private.function_modes()
    private.push_function_mode(mode)
    at_top = private.function_mode_at(before) is mode
    return private.pop_function_mode() is mode and at_top and private.function_modes() == before


@contextmanager
def _dispatch_mode() -> Iterator[None]:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        yield


@canary("torch._C._len_torch_dispatch_stack", "torch.utils._python_dispatch._disable_current_modes")
def _dispatch_modes() -> bool:
    before = private.dispatch_modes()
    with _dispatch_mode():
        inside = private.dispatch_modes()
        with private.without_dispatch_modes():
            off = private.dispatch_modes()
    return inside == before + 1 and off == 0 and private.dispatch_modes() == before


@canary("torch._C._DisableFuncTorch")
def _without_transforms() -> bool:
    def inside(x: Tensor) -> Tensor:
        with private.without_transforms():
            fresh.append(torch.ones(2))
        return x

    fresh: list[Tensor] = []
    torch.func.vmap(inside, randomness="same")(torch.ones(2))
    return fresh[0].sum().item() == 2


@canary("torch._C.DisableTorchFunction")
def _without_function_overrides() -> bool:
    seen: list[str] = []

    class Loud(Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            inherited: Any = super().__torch_function__
            return inherited(func, types, args, kwargs or {})

    loud = torch.ones(2).as_subclass(Loud)
    seen.clear()
    with private.without_function_overrides():
        loud.sum()
    return seen == []


@canary("torch._C._EnableTorchFunction")
def _enabled_again() -> bool:
    """A mode sees calls again inside a block in which none does."""
    seen: list[Any] = []

    class Sees(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(1)
    with private.without_function_overrides(), Sees():
        x + 1
        before = len(seen)
        with private.with_function_overrides():
            x + 1
    return before == 0 and len(seen) == 1


@canary("torch.utils._device.DeviceContext")
def _default_device() -> bool:
    """The mode of a default device is the lowest, and of this class."""
    with torch.device("cpu"):
        lowest = private.function_mode_at(0)
    return isinstance(lowest, private.default_device_mode)


@canary("torch._C._set_grad_enabled")
def _set_grad() -> bool:
    was_on = torch.is_grad_enabled()
    try:
        private.set_grad(False)
        off = torch.is_grad_enabled()
        private.set_grad(True)
        return torch.is_grad_enabled() and not off
    finally:
        torch.set_grad_enabled(was_on)


@canary("torch._C._is_any_autocast_enabled")
def _is_autocast() -> bool:
    with torch.autocast("cpu", enabled=False):
        off = private.is_autocast()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return private.is_autocast() and not off


@canary("torch._C._is_tracing")
def _is_tracing() -> bool:
    answers: list[bool] = []

    def asking(x: Tensor) -> Tensor:
        answers.append(private.is_tracing())
        return x + 1

    trace: Any = torch.jit.trace
    trace(asking, torch.ones(2), check_trace=False)
    return answers == [True] and not private.is_tracing()


@canary("torch.autograd.forward_ad._current_level")
def _dual_level() -> bool:
    before = private.dual_level()
    with torch.autograd.forward_ad.dual_level():
        return before == -1 and private.dual_level() == 0


@canary("torch._C._autograd._top_saved_tensors_default_hooks")
def _saved_tensors_hooks() -> bool:
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        inside = private.saved_tensors_hooks(False)
    return inside is not None and private.saved_tensors_hooks(False) is None


@canary("torch.autograd.Variable._execution_engine")
def _queue_callback() -> bool:
    said: list[str] = []
    _asked_in_backward(lambda: private.queue_callback(lambda: said.append("ended")))
    return said == ["ended"]
