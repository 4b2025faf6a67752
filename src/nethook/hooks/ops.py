"""Seeing the operations inside a forward: what each is given, and what it returns.

    class Shapes(OpConsumer):
        def wants(self, op):                              # asked once for each address
            return op.name == "softmax"

        def after(self, op, function, args, kwargs, result):
            print(op.address, tuple(result.shape))        # 'h.0.attn/softmax#0' (2, 4, 16, 16)
            # return a value to put it in the result's place; None leaves it

    with Attachment(Owner("nethook.shapes")) as hooks:    # or hooks.remove(), later
        watch_ops(Tree(model), hooks, Shapes())
        model(x)

`OpConsumer` lists all that a consumer may be told: before and after each operation it wants, and
when a module is entered and left. One that overrides neither `wants` nor the rest but `after` sees
every operation.

How it works. Two global hooks note which module runs; while the outermost of them runs, and only
then, a `TorchFunctionMode` sees every function of torch that is called. The mode is taken out of
the stack of modes by search, so others may enter and leave theirs in whatever order. It is a mode
of the thread in which the module was called. One mode serves all consumers of a thread, in the
order in which they were attached, so that what is attached later sees what was changed earlier.

What has no address: attribute reads, sizes and what else computes nothing (`op_names`); what
happens inside one function (`F.multi_head_attention_forward`); what runs under `unseen()`; what a
fused kernel or a script runs.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.overrides import TorchFunctionMode

from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.op_names import SET_ITEM, op_name, written_arguments
from nethook.hooks.op_sites import ModuleCall, Op, OpConsumer, OpWatcher
from nethook.hooks.op_write import put_back
from nethook.hooks.routing import GlobalForward

_graph_task = torch._C._current_graph_task_id
_modes = torch._C._len_torch_function_stack
_is_compiling = torch.compiler.is_compiling


def recomputing() -> bool:
    """Whether a backward pass runs now: then a forward is one that a checkpoint runs again."""
    return _graph_task() != -1


def watch_ops(tree: Tree, hooks: Attachment, consumer: OpConsumer) -> OpWatcher:
    """Lets `consumer` see the operations of a model until `hooks` are removed."""
    watcher = OpWatcher(tree, consumer)
    entered = module_hooks.register_module_forward_pre_hook(_Enters(hooks.owner, watcher))
    hooks.add(entered)
    hooks.add(GlobalForward(_Leaves(hooks.owner, watcher), always_call=True))
    hooks.add(_End(watcher))  # the first to go
    return watcher


class unseen:  # noqa: N801  it is used like a function
    """A block whose torch calls are no operations of the model: hooks of our own run user code."""

    __slots__ = ("_mode",)

    def __enter__(self) -> None:
        self._mode = _of_this_thread()
        self._mode.paused += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._mode.paused -= 1


def ops_are_seen() -> bool:
    """Whether a torch call in this thread would be seen as an operation now."""
    mode = getattr(_threads, "mode", None)
    return mode is not None and bool(mode.running)


class _Running:
    """The calls of one watcher's modules that are under way in one thread, the innermost last."""

    __slots__ = ("calls", "frame", "watcher")

    def __init__(self, watcher: OpWatcher, frame: FrameType) -> None:
        self.watcher = watcher
        self.calls: list[ModuleCall] = []
        # What called the outermost module. An exception that is no `Exception` ends a call without
        # a word; that this frame is no longer being executed is how it is noticed.
        self.frame = frame

    def next(self, name: str) -> Op | None:
        """The operation that is about to run, if the consumer wants it."""
        call = self.calls[-1]
        counts = call.counts
        k = counts.get(name, 0)
        counts[name] = k + 1
        known = call.place.known.get(name)
        if known is not None and k < len(known):
            return known[k]
        return self.watcher.meet(call.place, name, k)


class _Mode(TorchFunctionMode):
    """Sees the functions of torch that are called in one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[_Running] = []  # in the order in which they were attached
        self.paused = 0
        self.is_on = False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Tells the consumers of an operation, and runs it."""
        kwargs = {} if kwargs is None else kwargs
        if _is_compiling():
            return func(*args, **kwargs)
        name = op_name(func)
        if name is None or self.paused:
            return func(*args, **kwargs)
        seen: list[tuple[OpWatcher, Op]] = []
        for running in self.running:
            if running.calls and running.watcher.alive and not running.watcher.suspended:
                op = running.next(name)
                if op is not None:
                    seen.append((running.watcher, op))
        if not seen:
            return func(*args, **kwargs)
        return _run(seen, func, args, kwargs)

    def find(self, watcher: OpWatcher) -> _Running | None:
        """What runs of a watcher's modules in this thread."""
        for running in self.running:
            if running.watcher is watcher:
                return running
        return None

    def begin(self, running: _Running) -> None:
        """The outermost module of a watcher is called."""
        at = len(self.running)
        while at and self.running[at - 1].watcher.number > running.watcher.number:
            at -= 1
        self.running.insert(at, running)

    def end(self, running: _Running) -> None:
        """It has returned, or it will not."""
        if running in self.running:
            self.running.remove(running)
        self.settle()

    def settle(self) -> None:
        """Is on the stack of modes while a module runs in which operations may be seen."""
        wanted = bool(self.running)
        for running in self.running:
            if running.calls and running.calls[-1].hidden:
                wanted = False
        if wanted and not self.is_on:
            torch._C._push_on_torch_function_stack(self)
        elif not wanted and self.is_on:
            _take_off(self)
        self.is_on = wanted

    def forget_the_dead(self) -> None:
        """Ends what was left by an exception of which no hook was told."""
        if self.running:
            alive = _frames()
            for running in list(self.running):
                if running.frame not in alive or not running.watcher.alive:
                    self.end(running)


def _run(
    seen: list[tuple[OpWatcher, Op]],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    for watcher, op in seen:
        if watcher.told.before:
            new = watcher.consumer.before(op, function, args, kwargs)
            if new is not None:
                written = written_arguments(function, args, kwargs)
                args, kwargs = put_back((args, kwargs), new, written, op.address)
    try:
        result = function(*args, **kwargs)
    except BaseException as error:
        for watcher, op in seen:
            if watcher.told.failed:
                watcher.consumer.failed(op, function, args, kwargs, error)
        raise
    returns = result
    if function is SET_ITEM:
        result = args[0]
    for watcher, op in seen:
        if watcher.told.after:
            new = watcher.consumer.after(op, function, args, kwargs, result)
            if new is not None and new is not result:
                written = written_arguments(function, args, kwargs)
                result = put_back(result, new, written, op.address)
    return returns if function is SET_ITEM else result


class ModuleHook(Hook):
    """On every module: keeps account of which module of the model runs."""

    __slots__ = ("watcher",)

    def __init__(self, owner: Owner, watcher: OpWatcher) -> None:
        super().__init__(owner, "*")
        self.watcher = watcher

    def take(self, modules: set[int]) -> Callable[[], None]:
        """Sees nothing of a model with any of these modules; the function returned ends that."""
        if self.watcher.places.keys().isdisjoint(modules):
            return lambda: None
        self.watcher.suspended += 1

        def put_back() -> None:
            self.watcher.suspended -= 1

        return put_back


class _Enters(ModuleHook):
    """Before any module is called."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Notes that a module of the model is called."""
        watcher = self.watcher
        place = watcher.place_of(module)
        if place is None or watcher.suspended or not watcher.alive:
            return
        mode = _of_this_thread()
        running = mode.find(watcher)
        if running is not None and (place.is_root or place is running.calls[0].place):
            mode.forget_the_dead()
            running = mode.find(watcher)
        if running is None:
            mode.forget_the_dead()
            running = _Running(watcher, sys._getframe(1))
            mode.begin(running)
        call = ModuleCall(place)
        before = running.calls[-1].hidden if running.calls else None
        call.hidden = _may_be_fused(module, args, mode)
        running.calls.append(call)
        if call.hidden is not before:
            mode.settle()
        if watcher.told.entered:
            with unseen():
                watcher.consumer.entered(call, args)


class _Leaves(ModuleHook):
    """After any module was called, also when it raised an `Exception`."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Notes that a module of the model has returned."""
        watcher = self.watcher
        place = watcher.place_of(module)
        mode = _of_this_thread()
        running = mode.find(watcher)
        if place is None or running is None:
            return
        calls = running.calls
        for at in range(len(calls) - 1, -1, -1):
            if calls[at].place is place:
                break
        else:
            return
        call = calls[at]
        hidden = calls[-1].hidden
        del calls[at:]
        place.note(call.counts)
        if not calls:
            mode.end(running)
        elif calls[-1].hidden is not hidden:
            mode.settle()
        if watcher.told.left:
            with unseen():
                watcher.consumer.left(call, output)


class _End:
    """A handle: ends what a watcher has under way in this thread."""

    __slots__ = ("_watcher",)

    def __init__(self, watcher: OpWatcher) -> None:
        self._watcher = watcher

    def remove(self) -> None:
        self._watcher.alive = False
        mode = getattr(_threads, "mode", None)
        if mode is not None:
            mode.forget_the_dead()


# The mode of each thread. Modes belong to a thread, and so does what runs in it.
_threads = threading.local()


def _of_this_thread() -> _Mode:
    mode: _Mode | None = getattr(_threads, "mode", None)
    if mode is None:
        mode = _threads.mode = _Mode()
    return mode


def _take_off(mode: _Mode) -> None:
    """Takes a mode off the stack of modes, from wherever in it; those of others stay."""
    above = []
    while _modes():
        top = torch._C._pop_torch_function_stack()
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        torch._C._push_on_torch_function_stack(other)


def _frames() -> set[FrameType]:
    """The frames that are being executed in this thread."""
    found = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found.add(frame)
        frame = frame.f_back
    return found


_CAN_BE_FUSED = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)


def _may_be_fused(module: nn.Module, args: tuple[Any, ...], mode: _Mode) -> bool:
    """Whether a module may run as one fused kernel, which it does not while a mode is on.

    In evaluation without gradient these run fused, with other last bits, unless a mode would have
    to see what they do. So ours is out while they run.
    """
    if not isinstance(module, _CAN_BE_FUSED) or module.training:
        return False
    if not torch.backends.mha.get_fastpath_enabled() or _modes() > mode.is_on:
        return False
    if not torch.is_grad_enabled():
        return True
    tensors = [*module.parameters(), *(each for each in args if isinstance(each, torch.Tensor))]
    return not any(tensor.requires_grad for tensor in tensors)
