"""The hooks on modules: what they return, and the gradients of that.

A tap holds a slot for each phase, and no tensor of the model's. It changes nothing. Where its
module is compiled, it is part of the graph: see `hooks/compile/graph.py`.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from threading import get_ident as _thread
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.addresses.tree import Site
from nethook.hooks.autograd.gradients import ask_quickly
from nethook.hooks.compile.graph import numbered, show
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import quiet
from nethook.hooks.threads import elsewhere
from nethook.kinds.modules import bounds, unit_dim
from nethook.stats.memory import sizes
from nethook.stats.native import readable
from nethook.stats.rows import Slot
from nethook.stats.shards import local_part
from nethook.torch_private import (
    backward_id,
    dispatch_modes,
    function_modes,
    in_transform,
    is_tracing,
)
from nethook.watching import budget
from nethook.watching.fail_open import Guard
from nethook.watching.journal import Flags, Journal
from nethook.watching.measuring.gradient_scale import GradientScale
from nethook.watching.measuring.modes import Modes

_Tensor = torch.Tensor
_now = time.perf_counter
_is_compiling = torch.compiler.is_compiling

MODES = 16
"""Changes of `training` that are kept of one site."""


class WatchHook(Hook):
    """A hook of a watch, which is off once it has failed or watching has ended."""

    __slots__ = ("guard", "off")

    def __init__(self, owner: Owner, address: str, guard: Guard) -> None:
        super().__init__(owner, address)
        self.guard = guard
        self.off = False

    def turn_off(self) -> None:
        """It does nothing from now on."""
        self.off = True

    def failed(self, error: Exception) -> None:
        """Tells the watch of an error in here."""
        what = f"{type(self).__name__} at {self.address!r}"
        self.guard.failed(what, error, self.turn_off)


def described(tensor: torch.Tensor) -> dict[str, Any]:
    """Shape and type of a tensor, and its kind where that is one that is not measured."""
    held = local_part(tensor)
    kind = "partial" if held is None else readable.kind(held)
    return {
        "shape": sizes(tensor),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        **({} if kind is None else {"not_measured": kind}),
    }


class Layers:
    """What the taps of a watch share.

    Arguments:
        journal: where numbers go.
        flags: who is told of NaN.
        scale: what gradients are multiplied with.
        modes: told of layers whose mode changes.
        called_alone: told of a module that was called and no watched model around it, with whether
            gradients are on in a compiled graph, or None; says whether that is training.
    """

    __slots__ = (
        "_first_calls", "called_alone", "calls", "flags", "hidden", "journal", "modes",
        "scale", "schedule",
    )  # fmt: skip

    def __init__(
        self,
        journal: Journal,
        flags: Flags,
        scale: GradientScale,
        modes: Modes,
        called_alone: Callable[[nn.Module, bool | None], bool],
    ) -> None:
        self.journal = journal
        self.flags = flags
        self.scale = scale
        self.called_alone = called_alone
        self.calls = journal.clock.calls
        self.schedule = journal.schedule
        self.hidden = journal.schedule.hidden
        self.modes = modes
        self._first_calls = 0

    def count_first_call(self) -> int:
        """The position of a site in the order of first calls."""
        self._first_calls += 1
        return self._first_calls - 1


class OutputTap(WatchHook):
    """After a module's forward: summarises what it returned, and asks for the gradient of that."""

    __slots__ = (
        "__weakref__", "back", "batch", "calls", "first_call", "grad", "layers", "mode", "modes",
        "module", "module_type", "rows", "seen", "site", "slots",
    )  # fmt: skip

    def __init__(self, owner: Owner, address: str, layers: Layers, site: Site) -> None:
        super().__init__(owner, address, layers.journal.guard)
        self.layers = layers
        journal = layers.journal
        self.site = numbered(self)
        self.module = weakref.ref(site.module)
        self.module_type = type(site.module)
        self.calls = {"train": 0, "eval": 0, "aux": 0, "off": 0}
        self.first_call: int | None = None
        # `training` at the last call, in training and without gradient.
        self.mode: list[bool | None] = [None, None]
        self.modes: list[tuple[int, str, bool]] = []
        self.batch: list[int] = []  # least, greatest, last
        self.seen: dict[str, Any] = {}  # shape, dtype, device of the first output
        row = journal.row(address, "outputs")
        self.rows = row
        self.slots: list[Slot | None] = [None, None]  # in training, and without gradient
        self.grad: GradTap | None = None
        if "grads" in journal.options.wanted:
            grad_row = journal.row(address, "grads")
            if grad_row is not None:
                self.grad = self.grad_tap(owner, address, layers, journal.train.slot(grad_row))
        self.back = None if self.grad is None else numbered(self)

    def grad_tap(self, owner: Owner, address: str, layers: Layers, slot: Slot) -> GradTap:
        """The tap on the gradient of what the module returns."""
        return GradTap(owner, address, layers, slot)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """Measures a call."""
        if _is_compiling():
            return show(self.site, args, output, self.back)
        if self.off or not self.guard.alive:
            return None
        if _thread() != self.owner.thread and elsewhere(self.owner, module):
            return None
        start = _now()
        layers = self.layers
        schedule, calls = layers.schedule, layers.calls
        try:
            if in_transform() or is_tracing():
                pass
            elif backward_id() != -1:
                self.again(args, output)
            elif type(output) is not _Tensor or function_modes() or dispatch_modes():
                with quiet():
                    self.saw(module, args, output)
            elif calls.depth and calls.training and module.training is self.mode[0]:
                self.calls["train"] += 1  # as `saw`, in short: this is nearly every call
                if schedule.outputs:
                    self.measure(module, args, output, True)
                if schedule.grads and self.grad is not None and output.requires_grad:
                    ask_quickly(output, self.grad, args)
            else:
                self.saw(module, args, output)
        except Exception as error:
            self.failed(error)
        schedule.spent[budget.OUTPUTS] += _now() - start + schedule.hook_seconds
        return None

    def again(self, args: tuple[Any, ...], output: Any) -> None:
        """A checkpoint has run the module again, inside a backward pass: only its gradient counts.

        Under a reentrant checkpoint the first run had none. Under the other kind what is returned
        now is not what gradients flow through, and the hook never fires.
        """
        layers = self.layers
        if layers.calls.training and layers.schedule.grads and self.grad is not None:
            with quiet():
                for _, tensor in tensors(output):
                    if tensor.requires_grad:
                        ask_quickly(tensor, self.grad, args)

    def saw(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """One call of the module has returned."""
        layers = self.layers
        calls, schedule = layers.calls, layers.schedule
        training = calls.training if calls.depth else layers.called_alone(module, None)
        self.calls["train" if training else "off"] += 1
        if module.training is not self.mode[not training]:
            self.mode_changed(module.training, training)
        measures = schedule.outputs if training else True
        asks = training and schedule.grads and self.grad is not None
        if not (measures or asks):
            return
        if type(output) is _Tensor:
            if measures:
                self.measure(module, args, output, training)
            if asks and output.requires_grad:
                ask_quickly(output, self.grad, args)  # type: ignore[arg-type]
            return
        for _, tensor in tensors(output):
            if measures:
                self.measure(module, args, tensor, training)
            if asks and tensor.requires_grad:
                ask_quickly(tensor, self.grad, args)  # type: ignore[arg-type]

    def value_in_graph(self, value: torch.Tensor, training: bool, first: bool) -> None:
        """Measures a tensor that the module has returned inside a compiled graph."""
        if self.off or not self.guard.alive:
            return
        layers = self.layers
        calls, schedule = layers.calls, layers.schedule
        start = _now()
        try:
            module = self.module()
            if module is not None and backward_id() == -1:
                if function_modes() or dispatch_modes():
                    with quiet():
                        self.saw_in_graph(module, value, training, first)
                elif (
                    first
                    and calls.depth
                    and calls.training
                    and schedule.outputs
                    and (module.training is self.mode[0])
                ):
                    # As `saw_in_graph`, in short: this is nearly every one.
                    self.calls["train"] += 1
                    layers.hidden.shown()
                    self.measure(module, None, value, True)
                else:
                    self.saw_in_graph(module, value, training, first)
        except Exception as error:
            self.failed(error)
        schedule.spent[budget.OUTPUTS] += _now() - start

    def saw_in_graph(
        self, module: nn.Module, value: torch.Tensor, training: bool, first: bool
    ) -> None:
        """One tensor of one call. Its memory is the graph's, so it is not held."""
        layers = self.layers
        layers.hidden.shown()
        calls = layers.calls
        training = calls.training if calls.depth else layers.called_alone(module, training)
        if first:
            self.calls["train" if training else "off"] += 1
            if module.training is not self.mode[not training]:
                self.mode_changed(module.training, training)
        if layers.schedule.outputs if training else True:
            self.measure(module, None, value, training)

    def grad_in_graph(self, grad: torch.Tensor) -> None:
        """Measures the gradient of such a tensor."""
        tap, schedule = self.grad, self.layers.schedule
        if tap is None or not schedule.grads or tap.off or not self.guard.alive:
            return
        start = _now()
        try:
            tap.measure(grad)
        except Exception as error:
            tap.failed(error)
        schedule.spent[budget.GRADS] += _now() - start

    def measure(
        self,
        module: nn.Module,
        args: tuple[Any, ...] | None,
        tensor: torch.Tensor,
        training: bool,
    ) -> None:
        """Folds one tensor into the row of the phase."""
        slot = self.slots[not training] or self.first(module, tensor, training)
        if slot is None:
            return
        odd = slot.fold(tensor)
        if training:
            if odd:
                self.layers.flags.flag(self.address, "outputs", module, args, tensor)
            if tensor.dim():
                size = tensor.size(0)
                if not self.batch or size != self.batch[2]:
                    low, high, _ = self.batch or (size,) * 3
                    self.batch = [min(low, size), max(high, size), size]

    def first(self, module: nn.Module, tensor: torch.Tensor, training: bool) -> Slot | None:
        """The slot of a phase, made at its first tensor: what that is decides what is counted."""
        if self.rows is None:
            return None
        journal = self.layers.journal
        dim = unit_dim(module, tensor.dim())
        rows = journal.train if training else journal.off
        slot = rows.slot(self.rows, unit_dim=dim, bounds=bounds(module))
        self.slots[not training] = slot
        if not self.seen:
            self.first_call = self.layers.count_first_call()
            self.seen = {**described(tensor), "device": str(tensor.device)}
        return slot

    def mode_changed(self, mode: bool, training: bool) -> None:
        """`module.training` is not what it was at the last call."""
        self.mode[not training] = mode
        clock = self.layers.journal.clock
        phase = "train" if training else clock.no_grad.phase
        # Training and evaluation take turns: a change is one against the last pass of that phase.
        of_phase = [change for change in self.modes if change[1] == phase]
        if (not of_phase or of_phase[-1][2] is not mode) and len(self.modes) < MODES:
            self.modes.append((clock.step, phase, mode))
            if of_phase:
                self.layers.modes.changed(self.address, phase, mode)

    def pass_was(self, phase: str) -> None:
        """A pass without gradient has ended, and turned out to be of this phase."""
        if phase == "eval" and self.modes and self.modes[-1][1] == "aux":
            step, _, mode = self.modes.pop()
            of_phase = [change for change in self.modes if change[1] == phase]
            if not of_phase or of_phase[-1][2] is not mode:
                self.modes.append((step, phase, mode))


class RoutedTap(OutputTap):
    """A tap behind a router, which is told keyword arguments too."""

    __slots__ = ("_tap",)

    def __init__(self, tap: OutputTap) -> None:
        self.owner = tap.owner
        self.address = tap.address
        self._tap = tap

    def __call__(self, module: nn.Module, args: Any, *rest: Any) -> Any:
        """Hands on what came out."""
        return self._tap(module, args, rest[-1])


class GradTap(WatchHook):
    """When the gradient of an output was computed."""

    __slots__ = ("layers", "slot")

    def __init__(self, owner: Owner, address: str, layers: Layers, slot: Slot) -> None:
        super().__init__(owner, address, layers.journal.guard)
        self.layers = layers
        self.slot = slot

    def __call__(self, grad: torch.Tensor | None) -> None:
        """Measures a gradient, in the backward passes of the loop."""
        if grad is None or self.off or not self.guard.alive or _is_compiling():
            return
        start = _now()
        try:
            self.measure(grad)
        except Exception as error:
            self.failed(error)
        self.layers.schedule.spent[budget.GRADS] += _now() - start

    def measure(self, grad: torch.Tensor) -> None:
        """Folds a gradient into its row."""
        layers = self.layers
        # `autograd.grad` inside a loss (a gradient penalty) is no gradient of the loss.
        if not layers.calls.in_backward:
            return
        if type(grad) is not _Tensor or function_modes() or dispatch_modes():
            with quiet():
                odd = self.slot.fold(grad, layers.scale.factor)
        else:
            odd = self.slot.fold(grad, layers.scale.factor)
        if odd:
            layers.flags.flag(self.address, "grads", None, None, grad)
