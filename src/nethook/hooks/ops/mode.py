"""The mode that sees the functions of torch, and what runs while it does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode

from nethook.hooks.ops.consumer import ModuleCall, Op, OpWatcher
from nethook.hooks.ops.inplace import put_back
from nethook.hooks.ops.mode_stack import is_on_stack, take_off
from nethook.hooks.ops.names import SET_ITEM, known_names, op_name, written_arguments
from nethook.torch_private import push_function_mode

_is_traced = torch.compiler.is_dynamo_compiling


class Running:
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
        if self.watcher.off or not self.calls:
            return None
        call = self.calls[-1]
        k = call.counts.get(name, 0)
        call.counts[name] = k + 1
        ops = call.ops.get(name)
        if ops is not None and k < len(ops):
            return ops[k]
        return self.watcher.meet(call.place, name, k)


class Block(Protocol):
    """A block of code that a frame runs."""

    frame: FrameType


class OpMode(TorchFunctionMode):
    """Sees the functions of torch that are called in one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[Running] = []  # in the order in which they were attached
        self.paused: list[Block] = []  # blocks whose torch calls are none of the model's
        self.is_on = False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Tells the consumers of an operation, and runs it."""
        if kwargs is None:
            kwargs = {}
        if self.paused or _is_traced():
            return func(*args, **kwargs)
        try:
            name = known_names[func]
        except (KeyError, TypeError):
            name = op_name(func)
        if name is None:
            return func(*args, **kwargs)
        if len(self.running) == 1:
            running = self.running[0]
            op = running.next(name)
            if op is None:
                return func(*args, **kwargs)
            watcher = running.watcher
            if not watcher.only_after or func is SET_ITEM:
                return _run([(watcher, op)], func, args, kwargs)
            result = func(*args, **kwargs)  # the hot path
            new = watcher.after(op, func, args, kwargs, result)
            return result if new is None else _replaced(op, func, args, kwargs, result, new)
        seen = [(running.watcher, running.next(name)) for running in self.running]
        return _run([(watcher, op) for watcher, op in seen if op is not None], func, args, kwargs)

    def find(self, watcher: OpWatcher) -> Running | None:
        """What runs of a watcher's modules in this thread."""
        for running in self.running:
            if running.watcher is watcher:
                return running
        return None

    def begin(self, running: Running) -> None:
        """The outermost module of a watcher is called."""
        position = len(self.running)
        while position and self.running[position - 1].watcher.number > running.watcher.number:
            position -= 1
        self.running.insert(position, running)

    def end(self, running: Running) -> None:
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
            push_function_mode(self)
            self.is_on = True
        # While a consumer is told of an operation torch has taken the mode off, and puts it back
        # afterwards, whatever is done here: it goes the next time.
        elif not wanted and self.is_on and is_on_stack(self):
            take_off(self)
            self.is_on = False

    @contextmanager
    def again(self, running: Running) -> Iterator[None]:
        """Sees what runs inside as a part of a call that has long returned."""
        before, was_on = self.running, self.is_on
        self.running = [other for other in before if other.watcher is not running.watcher]
        self.begin(running)
        # Inside a backward pass that an operation has started, torch has taken the mode off.
        pushed = not is_on_stack(self)
        if pushed:
            push_function_mode(self)
        self.is_on = True
        try:
            yield
        finally:
            if pushed:
                take_off(self)
            self.running, self.is_on = before, was_on

    def forget_the_dead(self) -> None:
        """Ends what was left by an exception of which no hook was told."""
        if self.running or self.paused:
            alive = _frames()
            for running in list(self.running):
                if running.frame not in alive or not running.watcher.alive:
                    self.end(running)
            self.paused = [block for block in self.paused if block.frame in alive]
        self.settle()


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
        result = _computation(seen, function)(*args, **kwargs)
    except BaseException as error:
        for watcher, op in seen:
            if watcher.told.failed:
                watcher.consumer.failed(op, function, args, kwargs, error)
        raise
    value = args[0] if function is SET_ITEM else result
    for watcher, op in seen:
        if watcher.told.after:
            new = watcher.after(op, function, args, kwargs, value)
            if new is not None:
                value = _replaced(op, function, args, kwargs, value, new)
    return result if function is SET_ITEM else value


def _computation(
    seen: list[tuple[OpWatcher, Op]], function: Callable[..., Any]
) -> Callable[..., Any]:
    """What computes an operation: its function, or what consumers have in its place."""
    computed = function
    for watcher, op in seen:
        if watcher.told.instead:
            computed = _instead(watcher, op, function, computed)
    return computed


def _instead(
    watcher: OpWatcher, op: Op, function: Callable[..., Any], computed: Callable[..., Any]
) -> Callable[..., Any]:
    def compute(*args: Any, **kwargs: Any) -> Any:
        result = watcher.consumer.instead(op, function, args, kwargs, computed)
        written = written_arguments(function, args, kwargs)
        if not written or result is None or result is written[0]:
            return result
        put_back(written[0], result, written, op.address)
        return None if function is SET_ITEM else written[0]

    return compute


def _replaced(
    op: Op,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Any,
    new: Any,
) -> Any:
    if new is result:
        return result
    return put_back(result, new, written_arguments(function, args, kwargs), op.address)


# The mode of each thread. Modes belong to a thread, and so does what runs in it.
_threads = threading.local()


def mode_of_this_thread() -> OpMode:
    """The mode of this thread."""
    mode: OpMode | None = getattr(_threads, "mode", None)
    if mode is None:
        mode = _threads.mode = OpMode()
    return mode


def ops_are_seen() -> bool:
    """Whether a torch call in this thread would be seen as an operation now."""
    mode = getattr(_threads, "mode", None)
    return mode is not None and bool(mode.running)


def mode_where_there_is_one() -> OpMode | None:
    """The mode of this thread, if any module was ever watched in it."""
    mode: OpMode | None = getattr(_threads, "mode", None)
    return mode


def _frames() -> set[FrameType]:
    """The frames that are being executed in this thread."""
    frames = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.add(frame)
        frame = frame.f_back
    return frames


class unseen:  # noqa: N801  it is used like a function
    """A block whose torch calls do not count as operations of the model: those of our own hooks."""

    __slots__ = ("_mode", "frame")

    def __enter__(self) -> None:
        self._mode = mode_of_this_thread()
        self.frame = sys._getframe(1)  # by which an interrupted block is noticed
        self._mode.paused.append(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self in self._mode.paused:
            self._mode.paused.remove(self)


class seen:  # noqa: N801  it is used like a function
    """A block inside `unseen` whose torch calls count again: the model computes."""

    __slots__ = ("_mode", "_paused")

    def __enter__(self) -> None:
        self._mode = mode_where_there_is_one()
        if self._mode is not None:
            self._paused, self._mode.paused = self._mode.paused, []

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._mode is not None:
            self._mode.paused = self._paused
