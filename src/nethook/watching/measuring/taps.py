"""The hooks on modules: what they return, and the gradients of that.

A tap holds a slot for each phase, and no tensor of the model's. It changes nothing. Where its
module is compiled, it is part of the graph: see `hooks/compile/graph.py`.
"""

from __future__ import annotations

import time
import weakref
from threading import get_ident as _thread
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.addresses.tree import Site
from nethook.hooks.autograd.gradients import ask_quickly
from nethook.hooks.compile.graph import numbered, show, show_call
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import quiet
from nethook.hooks.threads import elsewhere
from nethook.kinds.modules import bounds, unit_dim
from nethook.runs import names
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
from nethook.watching.fail_open import Guarded
from nethook.watching.measuring.needs import TapSession

_Tensor = torch.Tensor
_now = time.perf_counter
_is_compiling = torch.compiler.is_compiling

_NOTHING: dict[str, Any] = {}

MODES = 16
"""Changes of `training` that are kept of one site."""


class WatchHook(Hook):
    """A hook of a watch, which is off once it has failed or watching has ended."""

    __slots__ = ("off", "session")

    def __init__(self, owner: Owner, address: str, session: Guarded) -> None:
        super().__init__(owner, address)
        self.session = session
        self.off = False

    def turn_off(self) -> None:
        """It does nothing from now on."""
        self.off = True

    def failed(self, error: Exception) -> None:
        """Tells the watch of an error in here."""
        what = f"{type(self).__name__} at {self.address!r}"
        self.session.guard.failed(what, error, self.turn_off)


def described(tensor: torch.Tensor) -> dict[str, Any]:
    """Shape and type of a tensor, and its kind where that is one that is not measured."""
    held = local_part(tensor)
    kind = "partial" if held is None else readable.kind(held)
    return {
        "shape": sizes(tensor),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        **({} if kind is None else {"not_measured": kind}),
    }


class OutputTap(WatchHook):
    """After a module's forward: summarises what it returned, and asks for the gradient of that."""

    __slots__ = (
        "__weakref__", "back", "batch", "calls", "first_call", "grad", "mode", "modes", "module",
        "module_type", "rows", "seen", "site", "slots",
    )  # fmt: skip

    session: TapSession

    def __init__(self, owner: Owner, address: str, session: TapSession, site: Site) -> None:
        super().__init__(owner, address, session)
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
        row = session.row(address, "outputs")
        self.rows = row
        self.slots: list[Slot | None] = [None, None]  # in training, and without gradient
        self.grad: GradTap | None = None
        if session.wants_grads:
            grad_row = session.row(address, "grads")
            if grad_row is not None:
                self.grad = self.grad_tap(owner, address, session, session.train.slot(grad_row))
        self.back = None if self.grad is None else numbered(self)

    def grad_tap(self, owner: Owner, address: str, session: TapSession, slot: Slot) -> GradTap:
        """The tap on the gradient of what the module returns."""
        return GradTap(owner, address, session, slot)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """Measures a call."""
        if _is_compiling():
            return show(self.site, args, output, self.back)
        if self.off or not self.session.guard.alive:
            return None
        if _thread() != self.owner.thread and elsewhere(self.owner, module):
            return None
        start = _now()
        session = self.session
        try:
            if in_transform() or is_tracing():
                pass
            elif backward_id() != -1:
                self.again(args, output)
            elif type(output) is not _Tensor or function_modes() or dispatch_modes():
                with quiet():
                    self.saw(module, args, output)
            elif session.depth and session.training and module.training is self.mode[0]:
                self.calls["train"] += 1  # as `saw`, in short: this is nearly every call
                if session.on_outputs:
                    self.measure(module, args, output, True)
                if session.on_grads and self.grad is not None and output.requires_grad:
                    ask_quickly(output, self.grad, args)
            else:
                self.saw(module, args, output)
        except Exception as error:
            self.failed(error)
        session.spent[budget.OUTPUTS] += _now() - start + session.hook_seconds
        return None

    def again(self, args: tuple[Any, ...], output: Any) -> None:
        """A checkpoint has run the module again, inside a backward pass: only its gradient counts.

        Under a reentrant checkpoint the first run had none. Under the other kind what is returned
        now is not what gradients flow through, and the hook never fires.
        """
        session = self.session
        if session.training and session.on_grads and self.grad is not None:
            with quiet():
                for _, tensor in tensors(output):
                    if tensor.requires_grad:
                        ask_quickly(tensor, self.grad, args)

    def saw(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """One call of the module has returned."""
        session = self.session
        training = session.training if session.depth else session.called_alone(module)
        self.calls["train" if training else "off"] += 1
        if module.training is not self.mode[not training]:
            self.mode_changed(module.training, training)
        measures = session.on_outputs if training else True
        asks = training and session.on_grads and self.grad is not None
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
        session = self.session
        if self.off or not session.guard.alive:
            return
        start = _now()
        try:
            module = self.module()
            if module is not None and backward_id() == -1:
                if function_modes() or dispatch_modes():
                    with quiet():
                        self.saw_in_graph(module, value, training, first)
                elif (
                    first
                    and session.depth
                    and session.training
                    and session.on_outputs
                    and (module.training is self.mode[0])
                ):
                    # As `saw_in_graph`, in short: this is nearly every one.
                    self.calls["train"] += 1
                    session.hidden.shown()
                    self.measure(module, None, value, True)
                else:
                    self.saw_in_graph(module, value, training, first)
        except Exception as error:
            self.failed(error)
        session.spent[budget.OUTPUTS] += _now() - start

    def saw_in_graph(
        self, module: nn.Module, value: torch.Tensor, training: bool, first: bool
    ) -> None:
        """One tensor of one call. Its memory is the graph's, so it is not held."""
        session = self.session
        session.hidden.shown()
        training = session.training if session.depth else session.called_alone(module, training)
        if first:
            self.calls["train" if training else "off"] += 1
            if module.training is not self.mode[not training]:
                self.mode_changed(module.training, training)
        if session.on_outputs if training else True:
            self.measure(module, None, value, training)

    def grad_in_graph(self, grad: torch.Tensor) -> None:
        """Measures the gradient of such a tensor."""
        tap, session = self.grad, self.session
        if tap is None or not session.on_grads or tap.off or not session.guard.alive:
            return
        start = _now()
        try:
            tap.measure(grad)
        except Exception as error:
            tap.failed(error)
        session.spent[budget.GRADS] += _now() - start

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
                self.session.flag(self.address, "outputs", module, args, tensor)
            if tensor.dim():
                size = tensor.size(0)
                if not self.batch or size != self.batch[2]:
                    low, high, _ = self.batch or (size,) * 3
                    self.batch = [min(low, size), max(high, size), size]

    def first(self, module: nn.Module, tensor: torch.Tensor, training: bool) -> Slot | None:
        """The slot of a phase, made at its first tensor: what that is decides what is counted."""
        if self.rows is None:
            return None
        session = self.session
        dim = unit_dim(module, tensor.dim())
        rows = session.train if training else session.off_rows()
        slot = rows.slot(self.rows, unit_dim=dim, bounds=bounds(module))
        self.slots[not training] = slot
        if not self.seen:
            self.first_call = session.count_first_call()
            self.seen = {**described(tensor), "device": str(tensor.device)}
        return slot

    def mode_changed(self, mode: bool, training: bool) -> None:
        """`module.training` is not what it was at the last call."""
        self.mode[not training] = mode
        phase = "train" if training else self.session.off_phase()
        # Training and evaluation take turns: a change is one against the last pass of that phase.
        of_phase = [change for change in self.modes if change[1] == phase]
        if (not of_phase or of_phase[-1][2] is not mode) and len(self.modes) < MODES:
            self.modes.append((self.session.step, phase, mode))
            if of_phase:
                self.session.mode_changed(self.address, phase, mode)

    def pass_was(self, phase: str) -> None:
        """A pass without gradient has ended, and turned out to be of this phase."""
        if phase == "eval" and self.modes and self.modes[-1][1] == "aux":
            step, _, mode = self.modes.pop()
            of_phase = [change for change in self.modes if change[1] == phase]
            if not of_phase or of_phase[-1][2] is not mode:
                self.modes.append((step, phase, mode))


class GradTap(WatchHook):
    """When the gradient of an output was computed."""

    __slots__ = ("slot",)

    session: TapSession

    def __init__(self, owner: Owner, address: str, session: TapSession, slot: Slot) -> None:
        super().__init__(owner, address, session)
        self.slot = slot

    def __call__(self, grad: torch.Tensor | None) -> None:
        """Measures a gradient, in the backward passes of the loop."""
        session = self.session
        if grad is None or self.off or not session.guard.alive or _is_compiling():
            return
        start = _now()
        try:
            self.measure(grad)
        except Exception as error:
            self.failed(error)
        session.spent[budget.GRADS] += _now() - start

    def measure(self, grad: torch.Tensor) -> None:
        """Folds a gradient into its row."""
        session = self.session
        # `autograd.grad` inside a loss (a gradient penalty) is no gradient of the loss.
        if not session.in_backward:
            return
        if type(grad) is not _Tensor or function_modes() or dispatch_modes():
            with quiet():
                odd = self.slot.fold(grad, session.grad_factor)
        else:
            odd = self.slot.fold(grad, session.grad_factor)
        if odd:
            session.flag(self.address, "grads", None, None, grad)


def takes_over(session: TapSession, owner: Owner) -> bool:
    """Whether this thread, which did not open the watch, is the one to be followed from now on."""
    if session.totals["forwards"] or not torch.is_grad_enabled() or owner.thread in (None, -1):
        return False
    owner.thread = owner.opener = _thread()
    owner.others = 0
    session.note_event(names.THREAD, "the training runs in another thread than the watch's")
    return True


class _RootHook(WatchHook):
    """Around the calls of a watched model."""

    __slots__ = ("__weakref__", "model", "module", "site")

    session: TapSession

    def __init__(
        self, owner: Owner, address: str, session: TapSession, model: str, module: nn.Module
    ) -> None:
        super().__init__(owner, address, session)
        self.model = model
        self.module = weakref.ref(module)
        self.site = numbered(self)

    def call_in_graph(self, values: list[torch.Tensor], training: bool) -> None:
        """A call that is part of a compiled graph begins, or has ended."""
        raise NotImplementedError

    def turn_off(self) -> None:
        """Without it no call has a phase, or none ever ends."""
        self.session.guard.stop()


class RootBegins(_RootHook):
    """Before a watched model is called."""

    __slots__ = ()

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        """Notes that a call begins; the outermost one decides the phase."""
        if _is_compiling():
            show_call(self.site, (args, kwargs))
            return
        session = self.session
        if self.off or not session.guard.alive:
            return
        if _thread() != self.owner.thread and (
            elsewhere(self.owner, module) and not takes_over(session, self.owner)
        ):
            return
        start = _now()
        try:
            if backward_id() == -1 and not in_transform() and not is_tracing():
                if (
                    len(args) == 1
                    and type(args[0]) is _Tensor
                    and not (kwargs or function_modes() or dispatch_modes())
                ):
                    lull = session.lull
                    if not (lull.on and lull.call_begins(self.model, module, self.module, args)):
                        session.call_begins(self.model, module, args, _NOTHING)
                else:
                    with quiet():
                        session.call_begins(self.model, module, args, kwargs or _NOTHING)
        except Exception as error:
            self.failed(error)
        session.spent[budget.OTHER] += _now() - start

    def call_in_graph(self, values: list[torch.Tensor], training: bool) -> None:
        """A call that is part of a compiled graph begins. Its inputs are the graph's."""
        if self.off or not self.session.guard.alive:
            return
        start = _now()
        try:
            module = self.module()
            if module is not None and backward_id() == -1:
                with quiet():
                    self.session.call_begins(self.model, module, tuple(values), {}, training)
        except Exception as error:
            self.failed(error)
        self.session.spent[budget.OTHER] += _now() - start


class RootEnds(_RootHook):
    """After a watched model was called, also when it raised; the output is None then."""

    __slots__ = ()

    def __call__(self, module: nn.Module, *given: Any) -> None:
        """Notes that a call has ended."""
        if _is_compiling():
            show_call(self.site, given[-1])
            return
        session = self.session
        if self.off or not session.guard.alive:
            return
        if _thread() != self.owner.thread and elsewhere(self.owner, module):
            return
        start = _now()
        try:
            if session.lull.inside is module and session.lull.call_ends(self.model, given[-1]):
                pass  # as it began
            elif backward_id() == -1 and not in_transform() and not is_tracing():
                output = given[-1]
                if type(output) is _Tensor and not (function_modes() or dispatch_modes()):
                    session.call_ends(self.model, module, given[0], output)
                else:
                    with quiet():
                        session.call_ends(self.model, module, given[0], output)
        except Exception as error:
            self.failed(error)
        session.spent[budget.OTHER] += _now() - start + session.hook_seconds

    def call_in_graph(self, values: list[torch.Tensor], training: bool) -> None:
        """A call that is part of a compiled graph has ended."""
        if self.off or not self.session.guard.alive:
            return
        start = _now()
        try:
            module = self.module()
            if module is not None and backward_id() == -1:
                output = values[0] if len(values) == 1 else values
                with quiet():
                    self.session.call_ends(self.model, module, None, output)
        except Exception as error:
            self.failed(error)
        self.session.spent[budget.OTHER] += _now() - start
