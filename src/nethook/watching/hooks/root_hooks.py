"""The hooks around the calls of a watched model."""

from __future__ import annotations

import time
import weakref
from threading import get_ident as _thread
from typing import Any

import torch
from torch import nn

from nethook.hooks.compile.graph import numbered, show_call
from nethook.hooks.hook import Owner
from nethook.hooks.modes import quiet
from nethook.hooks.threads import elsewhere
from nethook.runs import names
from nethook.torch_private import (
    backward_id,
    dispatch_modes,
    function_modes,
    in_transform,
    is_tracing,
)
from nethook.watching.budget import OTHER
from nethook.watching.clock.calls import PLAIN
from nethook.watching.measuring.taps import WatchHook
from nethook.watching.session import Session

_Tensor = torch.Tensor
_now = time.perf_counter
_is_compiling = torch.compiler.is_compiling


def takes_over(session: Session, owner: Owner) -> bool:
    """Whether this thread, which did not open the watch, is the one to be followed from now on."""
    if (
        session.clock.totals["forwards"]
        or not torch.is_grad_enabled()
        or owner.thread in (None, -1)
    ):
        return False
    owner.thread = owner.opener = _thread()
    owner.others = 0
    session.journal.note_event(names.THREAD, "the training runs in another thread than the watch's")
    return True


class _RootHook(WatchHook):
    """Around the calls of a watched model."""

    __slots__ = ("__weakref__", "model", "module", "session", "site")

    def __init__(
        self, owner: Owner, address: str, session: Session, model: str, module: nn.Module
    ) -> None:
        super().__init__(owner, address, session.journal.guard)
        self.session = session
        self.model = model
        self.module = weakref.ref(module)
        self.site = numbered(self)

    def call_in_graph(self, values: list[torch.Tensor], training: bool) -> None:
        """A call that is part of a compiled graph begins, or has ended."""
        raise NotImplementedError

    def turn_off(self) -> None:
        """Without it no call has a phase, or none ever ends."""
        self.guard.stop()


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
        if not self.guard.alive:  # nor once it has failed: see `turn_off`
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
                    session.clock.calls.plain = args
                    session.call_begins(self.model, module, args, PLAIN)
                else:
                    with quiet():
                        session.call_begins(self.model, module, args, kwargs or {})
                if session.optimizers.wiped_passes.looks:
                    session.optimizers.wiped_passes.call_begins(args, kwargs or {})
        except Exception as error:
            self.failed(error)
        session.schedule.spent[OTHER] += _now() - start

    def call_in_graph(self, values: list[torch.Tensor], training: bool) -> None:
        """A call that is part of a compiled graph begins. Its inputs are the graph's."""
        if not self.guard.alive:  # nor once it has failed: see `turn_off`
            return
        start = _now()
        try:
            module = self.module()
            if module is not None and backward_id() == -1:
                with quiet():
                    self.session.call_begins(self.model, module, tuple(values), {}, training)
        except Exception as error:
            self.failed(error)
        self.session.schedule.spent[OTHER] += _now() - start


class RootEnds(_RootHook):
    """After a watched model was called, also when it raised; the output is None then."""

    __slots__ = ()

    def __call__(self, module: nn.Module, *given: Any) -> None:
        """Notes that a call has ended."""
        if _is_compiling():
            show_call(self.site, given[-1])
            return
        session = self.session
        if not self.guard.alive:  # nor once it has failed: see `turn_off`
            return
        args, output, calls = given[0], given[-1], session.clock.calls
        plain = args is calls.plain  # what was found when it began need not be asked again
        if not plain and _thread() != self.owner.thread and elsewhere(self.owner, module):
            return
        start = _now()
        try:
            if plain and type(output) is _Tensor:
                calls.plain = None
                session.call_ends(self.model, module, args, output)
            elif backward_id() == -1 and not in_transform() and not is_tracing():
                calls.plain = None
                with quiet():
                    session.call_ends(self.model, module, args, output)
        except Exception as error:
            self.failed(error)
        schedule = session.schedule
        schedule.spent[OTHER] += _now() - start + schedule.hook_seconds

    def call_in_graph(self, values: list[torch.Tensor], training: bool) -> None:
        """A call that is part of a compiled graph has ended."""
        if not self.guard.alive:  # nor once it has failed: see `turn_off`
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
        self.session.schedule.spent[OTHER] += _now() - start
