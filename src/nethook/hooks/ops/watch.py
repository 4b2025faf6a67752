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

What has no address: attribute reads, sizes and what else computes nothing (`names`); what
happens inside one function (`F.multi_head_attention_forward`); what runs under `unseen()`; what a
fused kernel or a script runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import without_warning_of_global_hooks
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.imports import when_imported
from nethook.hooks.ops.checkpoints import follow_checkpoints
from nethook.hooks.ops.consumer import ModuleCall, OpConsumer, OpWatcher
from nethook.hooks.ops.mode import (
    OpMode,
    Running,
    mode_of_this_thread,
    mode_where_there_is_one,
    unseen,
)
from nethook.hooks.threads import elsewhere
from nethook.torch_private import COMPILER_PACKAGE, backward_id, function_modes

_is_compiling = torch.compiler.is_compiling


def recomputing() -> bool:
    """Whether a backward pass runs now: then a forward is one that a checkpoint runs again."""
    return backward_id() != -1


def watch_ops(tree: Tree, hooks: Attachment, consumer: OpConsumer) -> OpWatcher:
    """Lets `consumer` see the operations of a model until `hooks` are removed."""
    watcher = OpWatcher(tree, consumer)
    without_warning_of_global_hooks(hooks)
    hooks.every_forward_pre(_Enters(hooks.owner, watcher))
    hooks.every_forward(_Leaves(hooks.owner, watcher), always_call=True)
    follow_checkpoints(watcher, hooks)
    # A first checkpoint imports the compiler in the midst of a forward, and that of torch 2.8
    # computes with tensors while it is imported.
    hooks.add(when_imported(COMPILER_PACKAGE, _nothing, around=unseen))
    hooks.add(_End(watcher))  # the first to go
    return watcher


def _nothing() -> None:
    """Waits for the import alone."""


class ModuleHook(Hook):
    """On every module: keeps account of which module of the model runs."""

    __slots__ = ("watcher",)

    def __init__(self, owner: Owner, watcher: OpWatcher) -> None:
        super().__init__(owner, "*")
        self.watcher = watcher

    def take(self, modules: set[int]) -> Callable[[], None]:
        """Sees nothing of a model with any of these modules; the function returned ends that."""
        if not self.watcher.has_any(modules):
            return lambda: None
        self.watcher.suspended += 1
        self.watcher.settle()

        def put_back() -> None:
            self.watcher.suspended -= 1
            self.watcher.settle()

        return put_back


class _Enters(ModuleHook):
    """Before any module is called."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Notes that a module of the model is called."""
        if _is_compiling():  # operations inside compiled code have no addresses
            return
        watcher = self.watcher
        place = watcher.by_id.get(id(module))
        if place is None or place.ref() is not module:  # the first time, or a module of others
            place = watcher.place_of(module)
        if place is None or watcher.off or elsewhere(self.owner, module):
            return
        mode = mode_of_this_thread()
        running = mode.find(watcher)
        if running is not None and (place.is_root or place is running.calls[0].place):
            mode.forget_the_dead()
            running = mode.find(watcher)
        if running is None:
            mode.forget_the_dead()
            running = Running(watcher, sys._getframe(1))
            mode.begin(running)
        call = ModuleCall(place)
        before = running.calls[-1].hidden if running.calls else None
        call.hidden = place.can_be_fused and _may_be_fused(module, args, mode)
        running.calls.append(call)
        if call.hidden is not before:
            mode.settle()
            if call.hidden:
                watcher.met.note_fused(place)
        if watcher.told.entered:
            with unseen():
                watcher.consumer.entered(call, args)


class _Leaves(ModuleHook):
    """After any module was called, also when it raised an `Exception`."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Notes that a module of the model has returned."""
        if _is_compiling():
            return
        watcher = self.watcher
        mode = mode_of_this_thread()
        running = mode.find(watcher)
        if running is None:
            return
        calls = running.calls
        depth = len(calls) - 1
        if calls[depth].place.ref() is not module:
            # A replica, a module of others, or one whose children were left without a word.
            place = watcher.place_of(module)
            while depth >= 0 and calls[depth].place is not place:
                depth -= 1
            if depth < 0:
                return
        call = calls[depth]
        place = call.place
        hidden = calls[-1].hidden
        del calls[depth:]
        watcher.met.note(place, call.counts)
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
        self._watcher.end()
        mode = mode_where_there_is_one()
        if mode is not None:
            mode.forget_the_dead()


def _may_be_fused(module: nn.Module, args: tuple[Any, ...], mode: OpMode) -> bool:
    """Whether a module may run as one fused kernel, which it does not while a mode is on.

    In evaluation without gradient these run fused, with other last bits, unless a mode would have
    to see what they do. So ours is out while they run.
    """
    if (
        module.training
        or not torch.backends.mha.get_fastpath_enabled()
        or function_modes() > mode.is_on
    ):
        return False
    if not torch.is_grad_enabled():
        return True
    tensors = [
        *module.parameters(),
        *(argument for argument in args if isinstance(argument, torch.Tensor)),
    ]
    return not any(tensor.requires_grad for tensor in tensors)
