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
from nethook.runs import names
from nethook.stats.shards import is_shared
from nethook.torch_private import (
    CLIP_GROUPS,
    CLIP_NORM,
    backward_id,
    dispatch_modes,
    function_modes,
)
from nethook.watching import budget
from nethook.watching.loop.needs import ClockSession
from nethook.watching.loop.optimizers import Steps
from nethook.watching.measuring.parameters import ParametersChangedError
from nethook.watching.measuring.taps import WatchHook

_now = time.perf_counter
_Tensor = torch.Tensor
_counting = Lock()  # backward passes may begin in several threads at once


class Loop:
    """What is known of the loop between its calls."""

    def __init__(self, session: ClockSession, steps: Steps, parameters: set[int]) -> None:
        self.session = session
        self.steps = steps
        self._parameters = parameters
        self.fresh = 0  # backward passes whose gradients no step has used, nor zero_grad wiped
        self.since_step = 0  # backward passes since the last step
        self.scale: float | torch.Tensor | None = None  # the factor of the last loss scaler seen
        self._told_scale: float | None = None
        self.scaled = False  # whether gradients have that factor now
        self.cleared = False  # whether an optimizer has cleared its gradients since the last step
        self.in_scaler_step = 0
        self.schedulers = 0  # steps of schedulers under way: one may consist of others
        session.loop_stepped = self.stepped  # type: ignore[method-assign]
        session.lull.follow(self)

    # -- what happens -------------------------------------------------------------------------

    def backward(self, roots: list[torch.Tensor]) -> None:
        """A backward pass is about to begin."""
        session = self.session
        self._look()
        self.steps.backward_begins(self.since_step == 0)
        self.since_step += 1
        self.fresh += 1
        scale = session.scale
        session.unscale = 1.0
        if scale is not None:
            self.scaled = True
            session.unscale = 1.0 / scale
        session.grad_factor = session.unscale / session.averaged
        session.backward_begins(roots)

    def _look(self) -> None:
        """Was anything cut short before?"""
        if self.steps.inside or self.session.depth or self.session.ending:
            self.session.interruptions.look()

    def stepped(self) -> None:
        """An optimizer has stepped."""
        self.fresh = self.since_step = 0
        self.scaled = self.cleared = False

    def zeroed(self, holder: object) -> None:
        """Gradients of an optimizer or of a module are about to be cleared."""
        if not self._concerns(holder):
            return
        self._look()
        session = self.session
        session.order.note("zero_grad")
        session.numbers.count(names.ZERO_GRADS)
        self.cleared = isinstance(holder, torch.optim.Optimizer)  # and not a part of the model
        if self.fresh:
            session.numbers.count(names.WIPED, self.fresh)
            self.fresh = 0
        self.scaled = False

    def _concerns(self, holder: object) -> bool:
        if isinstance(holder, torch.optim.Optimizer):
            return self.steps.track_of(holder) is not None
        first = next(holder.parameters(), None) if isinstance(holder, nn.Module) else None
        return first is not None and id(first) in self._parameters

    def scale_used(self, scaler: GradScaler) -> None:
        """A loss was multiplied with a scaler's factor; the next backward pass is of that."""
        scale = scaler._scale
        if scale is None:
            return
        session = self.session
        session.order.scaler = True
        self.scale = scale.item() if scale.device.type == "cpu" else scale
        session.scale = self.scale
        self.tell_scale()

    def tell_scale(self) -> None:
        """Notes the factor, and an event where it has changed."""
        scale, session = self.scale, self.session
        if not isinstance(scale, float):
            return
        session.numbers.set(names.LOSS_SCALE, scale)
        if self._told_scale is not None and scale != self._told_scale:
            data = {"before": self._told_scale, "after": scale}
            message = f"the loss scale went from {self._told_scale:g} to {scale:g}"
            session.note_event(names.SCALE_CHANGED, message, data=data)
        self._told_scale = scale

    def clipped(self, limit: float, norm: torch.Tensor | None) -> None:
        """Gradients are about to be clipped."""
        session = self.session
        session.order.note("clip")
        session.numbers.count(names.CLIPS)
        session.numbers.set(names.CLIP_LIMIT, float(limit))
        factor: float | torch.Tensor = 1.0
        if self.scaled:
            session.numbers.count(names.SCALED_CLIPS)
            factor = session.unscale
        if norm is not None and not is_shared(norm):
            if norm.device.type == "cpu":
                session.numbers.set(names.GRAD_NORM_UNCLIPPED, float(norm) * float(factor))
            else:
                session.pending.add(names.GRAD_NORM_UNCLIPPED, norm * factor)
        if session.on_param_grads:
            for track in self.steps.tracks.values():
                optimizer = track.ref()
                if optimizer is not None:
                    self.steps._arrange(track, optimizer)
                try:
                    if track.set is not None:
                        track.set.unclipped(float(factor))
                except ParametersChangedError:
                    track.sizes = []

    def scheduled(self) -> None:
        """A scheduler begins its step."""
        self._look()
        self.session.order.note("schedule")
        self.session.numbers.count(names.SCHEDULES)


class _Wrapper(WatchHook):
    """Around a function of torch: tells the loop, and calls it."""

    __slots__ = ("loop",)

    session: ClockSession

    call = ""
    """What it is called in the order of calls, and in events."""

    def __init__(self, owner: Owner, address: str, loop: Loop) -> None:
        super().__init__(owner, address, loop.session)
        self.loop = loop

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls the function, and tells the loop before and after."""
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
        return mine and not self.off and self.session.guard.alive

    def guarded(self, tell: Callable[..., None], *args: Any) -> None:
        """Tells the loop something; what goes wrong in that stays here."""
        start = _now()
        try:
            with quiet(), self.session.lock:
                tell(*args)
        except Exception as error:
            self.failed(error)
        self.session.spent[budget.OTHER] += _now() - start

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
        # Not that of another model, nor the one that a reentrant checkpoint runs inside a pass. As
        # `on`, in short.
        if (
            not session.called
            or self.off
            or not (thread is None or thread == get_ident())
            or not session.guard.alive
            or backward_id() != -1
        ):
            return function(*args, **kwargs)
        root = args[0] if args else None
        if type(root) is _Tensor and not (session.locked or function_modes() or dispatch_modes()):
            start = _now()
            try:  # as nearly always: there is nobody to hide from
                if not (session.lull.on and session.lull.backward(root)):
                    self.loop.backward([root])
            except Exception as error:
                self.failed(error)
            session.spent[budget.OTHER] += _now() - start
        else:
            self.guarded(self.before, args, kwargs)
        if session.locked:
            with _counting:
                session.in_backward += 1
        else:
            session.in_backward = 1
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            self.guarded(session.interruptions.passed, self.call, error)
            raise
        finally:
            if session.locked:
                with _counting:
                    session.in_backward -= 1
            else:
                session.in_backward = 0

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = args[0] if args else kwargs.get("tensors")
        roots = [given] if isinstance(given, torch.Tensor) else list(given or ())
        self.loop.backward([root for root in roots if isinstance(root, torch.Tensor)])


class _OnZeroGrad(_Wrapper):
    __slots__ = ()
    call = "zero_grad"

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Gradients are about to be cleared."""
        session, thread = self.session, self.owner.thread
        if not self.off and (thread is None or thread == get_ident()) and session.guard.alive:
            start = _now()
            lull = session.lull
            try:
                if session.locked:
                    with session.lock:
                        self.loop.zeroed(args[0])
                elif not (lull.on and lull.zeroed(args[0])):
                    self.loop.zeroed(args[0])
            except Exception as error:
                self.failed(error)
            session.spent[budget.OTHER] += _now() - start
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self.guarded(session.interruptions.passed, self.call, error)
                raise
        return function(*args, **kwargs)


class _OnScale(_Wrapper):
    __slots__ = ()
    call = "scale"

    def after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if args[0].is_enabled():
            self.loop.scale_used(args[0])


class _OnUnscale(_Wrapper):
    __slots__ = ()
    call = "unscale"

    def after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if args[0].is_enabled():
            self.loop.scaled = False
            if not self.loop.in_scaler_step:
                self.session.order.note("unscale")
                self.session.numbers.count(names.UNSCALES)


class _OnScalerStep(_Wrapper):
    __slots__ = ()
    call = "step"

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A step through a scaler, which may leave it out."""
        if not self.on:
            return function(*args, **kwargs)
        loop = self.loop
        steps = self.session.optimizer_steps
        loop.in_scaler_step += 1
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            self.guarded(self.session.interruptions.passed, self.call, error)
            raise
        finally:
            loop.in_scaler_step -= 1
        if self.session.optimizer_steps == steps:
            self.guarded(self.skipped, args, kwargs)
        return result

    def skipped(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The optimizer was not stepped."""
        optimizer = args[1] if len(args) > 1 else kwargs.get("optimizer")
        if isinstance(optimizer, torch.optim.Optimizer):
            self.loop.steps.skipped(optimizer)


class _OnScalerUpdate(_Wrapper):
    __slots__ = ()
    call = "update"

    def after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        scaler = args[0]
        if scaler.is_enabled():
            self.session.order.note("update")
            scale = scaler._scale
            if scale is not None and scale.device.type == "cpu":
                self.loop.scale = scale.item()
                self.loop.tell_scale()


class _OnSchedule(_Wrapper):
    __slots__ = ()
    call = "schedule"

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A step of a scheduler."""
        if not self.on:
            return function(*args, **kwargs)
        outer = self.loop.schedulers
        if not outer:
            self.guarded(self.loop.scheduled)
        try:
            self.loop.schedulers = outer + 1
            return function(*args, **kwargs)
        except BaseException as error:
            self.guarded(self.session.interruptions.passed, self.call, error)
            raise
        finally:
            self.loop.schedulers = outer


class _OnClipNorm(_Wrapper):
    __slots__ = ()
    call = "clip"

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = dict(zip(("parameters", "max_norm", "total_norm"), args, strict=False)) | kwargs
        self.loop.clipped(given["max_norm"], given.get("total_norm"))


class _OnGrouping(_Wrapper):
    """`clip_grad_value_` has no helper of its own, but it groups its gradients before it clips."""

    __slots__ = ()

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Tells of a clipping by value, when that is who asks."""
        if self.on:
            # Frames: this one, the partial's stub, and the function that asks.
            frame = sys._getframe(2)
            if frame.f_code is _CLIP_VALUE:
                self.guarded(self.loop.clipped, frame.f_locals["clip_value"], None)
        return function(*args, **kwargs)


_CLIP_VALUE = getattr(
    clip_grad.clip_grad_value_, "__wrapped__", clip_grad.clip_grad_value_
).__code__


def wrap_loop(hooks: Attachment, loop: Loop) -> None:
    """Wraps what a training loop calls, until the hooks are removed."""

    def put(holder: str | type, name: str, wrapper: type[_Wrapper]) -> None:
        where = holder if isinstance(holder, str) else holder.__qualname__
        function = wrapper(hooks.owner, f"{where}.{name}", loop)
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
