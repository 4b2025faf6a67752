"""The other calls of a training loop: backward, zero_grad, clipping, loss scalers, schedulers.

Torch's functions are wrapped while a watch is on. A script that has imported one by name calls the
original; so what is wrapped is what the original looks up when it runs: `Tensor.backward` calls
`torch.autograd.backward`, and the clipping functions call helpers of their module.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Lock, get_ident
from typing import Any

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.nn.utils import clip_grad
from torch.optim import lr_scheduler

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.modes import quiet
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import (
    CLIP_GROUPS,
    CLIP_NORM,
    backward_id,
    dispatch_modes,
    function_modes,
)
from nethook.watching.budget import OTHER
from nethook.watching.measuring.taps import WatchHook
from nethook.watching.session import Session

_now = time.perf_counter
_Tensor = torch.Tensor
_counting = Lock()  # backward passes may begin in several threads at once


class Nesting:
    """Calls of torch's that call each other."""

    def __init__(self) -> None:
        self.scaler_steps = 0
        """Steps of loss scalers under way, which unscale gradients by themselves."""
        self.schedulers = 0
        """Steps of schedulers under way: one may consist of others."""


class _Wrapper(WatchHook):
    """Around a function of torch: tells the session, and calls it."""

    __slots__ = ("locked", "nesting", "session")

    call = ""
    """What it is called in the order of calls, and in events."""

    def __init__(self, owner: Owner, address: str, session: Session, nesting: Nesting) -> None:
        super().__init__(owner, address, session.journal.guard)
        self.session = session
        self.locked = session.locked
        self.nesting = nesting

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls the function, and tells the session before and after."""
        if not self.on:
            return function(*args, **kwargs)
        self.guarded(self.before, args, kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            self.guarded(self.session.interruptions.passed, self.call, error)
            raise
        self.guarded(self.after, args, kwargs)
        return result

    @property
    def on(self) -> bool:
        """Whether to tell anything."""
        thread = self.owner.thread
        mine = thread is None or thread == get_ident()
        return mine and not self.off and self.guard.alive

    def guarded(self, tell: Callable[..., None], *args: Any) -> None:
        """Tells the session something; what goes wrong in that stays here."""
        start = _now()
        try:
            with quiet(), self.session.lock:
                tell(*args)
        except Exception as error:
            self.failed(error)
        self.session.schedule.spent[OTHER] += _now() - start

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Before the call."""

    def after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """After it has returned."""


class _OnBackward(_Wrapper):
    __slots__ = ()
    call = "backward"

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A backward pass."""
        session, thread = self.session, self.owner.thread
        calls, locked = session.clock.calls, self.locked
        # Not that of another model, nor the one that a reentrant checkpoint runs inside a pass. As
        # `on`, in short.
        if (
            not (calls.called or calls.nobody)
            or self.off
            or not self.guard.alive
            or (thread is not None and thread != get_ident())
            or backward_id() != -1
        ):
            return function(*args, **kwargs)
        if (
            args
            and type(args[0]) is _Tensor
            and not (locked or function_modes() or dispatch_modes())
        ):
            start = _now()
            try:  # as nearly always: there is nobody to hide from
                session.backward_begins([args[0]])
            except Exception as error:
                self.failed(error)
            session.schedule.spent[OTHER] += _now() - start
        else:
            self.guarded(self.before, args, kwargs)
        passes = session.optimizers.wiped_passes
        if passes.looks:
            self.guarded(passes.backward_begins)
        if locked:
            with _counting:
                calls.in_backward += 1
        else:
            calls.in_backward = 1
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            self.guarded(session.interruptions.passed, self.call, error)
            raise
        finally:
            if locked:
                with _counting:
                    calls.in_backward -= 1
            else:
                calls.in_backward = 0
            if passes.looks:
                self.guarded(passes.backward_ended)
            if session.optimizers.by_hand.early:
                self.guarded(session.optimizers.by_hand.backward_ended)

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = args[0] if args else kwargs.get("tensors")
        roots = [given] if isinstance(given, torch.Tensor) else list(given or ())
        self.session.backward_begins([root for root in roots if isinstance(root, torch.Tensor)])


class _OnZeroGrad(_Wrapper):
    __slots__ = ()
    call = "zero_grad"

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Gradients are about to be cleared."""
        session, thread = self.session, self.owner.thread
        if self.off or not self.guard.alive or (thread is not None and thread != get_ident()):
            return function(*args, **kwargs)
        start = _now()
        try:
            if self.locked:
                with session.lock:
                    session.zeroed(args[0])
            else:
                session.zeroed(args[0])
        except Exception as error:
            self.failed(error)
        session.schedule.spent[OTHER] += _now() - start
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            self.guarded(session.interruptions.passed, self.call, error)
            raise


class _OnScale(_Wrapper):
    __slots__ = ()
    call = "scale"

    def after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        scaler = args[0]
        if scaler.is_enabled() and scaler._scale is not None:
            self.session.loss_scaled(scaler._scale)


class _OnUnscale(_Wrapper):
    __slots__ = ()
    call = "unscale"

    def after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if args[0].is_enabled():
            self.session.unscaled(by_hand=not self.nesting.scaler_steps)


class _OnScalerStep(_Wrapper):
    __slots__ = ()
    call = "step"

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A step through a scaler, which may leave it out."""
        if not self.on:
            return function(*args, **kwargs)
        clock, nesting = self.session.clock, self.nesting
        steps = clock.optimizer_steps
        nesting.scaler_steps += 1
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            self.guarded(self.session.interruptions.passed, self.call, error)
            raise
        finally:
            nesting.scaler_steps -= 1
        if clock.optimizer_steps == steps:
            self.guarded(self.skipped, args, kwargs)
        return result

    def skipped(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The optimizer was not stepped."""
        optimizer = args[1] if len(args) > 1 else kwargs.get("optimizer")
        if isinstance(optimizer, torch.optim.Optimizer):
            self.session.step_skipped(optimizer)


class _OnScalerUpdate(_Wrapper):
    __slots__ = ()
    call = "update"

    def after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        scaler = args[0]
        if scaler.is_enabled():
            self.session.scale_updated(scaler._scale)


class _OnSchedule(_Wrapper):
    __slots__ = ()
    call = "schedule"

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A step of a scheduler."""
        if not self.on:
            return function(*args, **kwargs)
        nesting = self.nesting
        outer = nesting.schedulers
        if not outer:
            self.guarded(self.session.scheduled)
        try:
            nesting.schedulers = outer + 1
            return function(*args, **kwargs)
        except BaseException as error:
            self.guarded(self.session.interruptions.passed, self.call, error)
            raise
        finally:
            nesting.schedulers = outer


class _OnClipNorm(_Wrapper):
    __slots__ = ()
    call = "clip"

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = dict(zip(("parameters", "max_norm", "total_norm"), args, strict=False)) | kwargs
        self.session.clipped(given["max_norm"], given.get("total_norm"))


class _OnGrouping(_Wrapper):
    """`clip_grad_value_` has no helper of its own, but it groups its gradients before it clips."""

    __slots__ = ()

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Tells of a clipping by value, when that is who asks."""
        if self.on:
            # Frames: this one, the partial's stub, and the function that asks.
            frame = sys._getframe(2)
            if frame.f_code is _CLIP_VALUE:
                self.guarded(self.session.clipped, frame.f_locals["clip_value"], None)
        return function(*args, **kwargs)


_CLIP_VALUE = getattr(
    clip_grad.clip_grad_value_, "__wrapped__", clip_grad.clip_grad_value_
).__code__


def wrap_loop(hooks: Attachment, session: Session) -> None:
    """Wraps what a training loop calls, until the hooks are removed."""
    nesting = Nesting()

    def put(holder: str | type, name: str, wrapper: type[_Wrapper]) -> None:
        where = holder if isinstance(holder, str) else holder.__qualname__
        function = wrapper(hooks.owner, f"{where}.{name}", session, nesting)
        handle = WrappedFunction(holder, name, function, on=False)
        hooks.add(handle)
        handle.put_on()

    put("torch.autograd", "backward", _OnBackward)
    put(torch.optim.Optimizer, "zero_grad", _OnZeroGrad)
    put(nn.Module, "zero_grad", _OnZeroGrad)
    put(GradScaler, "scale", _OnScale)
    put(GradScaler, "unscale_", _OnUnscale)
    put(GradScaler, "step", _OnScalerStep)
    put(GradScaler, "update", _OnScalerUpdate)
    put("torch.nn.utils.clip_grad", CLIP_NORM, _OnClipNorm)
    put("torch.nn.utils.clip_grad", CLIP_GROUPS, _OnGrouping)
    for scheduler in _schedulers(lr_scheduler.LRScheduler):
        put(scheduler, "step", _OnSchedule)


def _schedulers(base: type) -> list[type]:
    """Every class of scheduler that has a `step` of its own."""
    schedulers = [base] if "step" in vars(base) else []
    below: list[type] = base.__subclasses__()
    for subclass in below:
        schedulers += [other for other in _schedulers(subclass) if other not in schedulers]
    return schedulers
