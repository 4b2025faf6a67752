"""Where a watched model is entered that is never called as a whole.

The `training_step` of a LightningModule calls `self.net`: the module that is watched is not called,
one part of it is. Where one part alone is called from outside, once per backward pass, it serves as
the model: what goes in and comes out of it is what goes in and comes out. That is looked for in a
whole step, with hooks on every module, which are taken off again when it ends.

Where several parts are called (a generator and a discriminator, layers of a list) none of them is
the model, and only layers are followed, as before.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident as _thread
from typing import Any, Final

import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import WhenCompiling
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.threads import elsewhere
from nethook.torch_private import backward_id, in_transform, is_tracing
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder
from nethook.watching.session import PARTS

TRIES: Final = 4
"""Steps that are looked at until one part alone is called in one of them."""


class Doors(FailsAlone, Recorder):
    """Finds the part of a model that is called from outside, where the model itself is not.

    Arguments:
        journal: of the watch, with its clock.
        hooks: of the watch.
        models: the modules of each model, without itself.
        found: told of a model's name, and the part that serves as the model from now on.
    """

    part = "the search for what is called"

    def __init__(
        self,
        journal: Journal,
        hooks: Attachment,
        models: Mapping[str, Sequence[nn.Module]],
        found: Callable[[str, nn.Module], None],
    ) -> None:
        self._watching: Journal = journal
        self._hooks = hooks
        self._models = {
            name: [weakref.ref(module) for module in modules] for name, modules in models.items()
        }
        self._found: Callable[[str, nn.Module], None] | None = found
        self._tries = 0
        self._looking: Attachment | None = None
        self._seen: list[tuple[str, weakref.ref[nn.Module]]] = []  # outermost calls of this step
        self._inside = 0  # calls of parts under way, one inside the other

    @contained
    def end_step(self, step: int) -> None:
        """A step has ended: was one part alone called in it?"""
        clock = self._watching.clock
        if clock.forwards:  # a model was called as a whole, or the part that serves as one
            self._watching.schedule.keep_awake(PARTS, False)
            self._stop()
            return
        seen, backwards = self._seen, clock.backwards
        self._seen, self._inside = [], 0
        if self._looking is None:
            if clock.calls.called and backwards and not self._tries:
                self._look()
            return
        self._tries += 1
        if seen and len({(name, id(part())) for name, part in seen}) == 1:
            name, part = seen[0]
            module = part()
            found = self._found
            if module is not None and found is not None and len(seen) == backwards:
                self._take_off()
                found(name, module)
        if self._tries >= TRIES:
            self._stop()

    @contained
    def close(self) -> None:
        """Watching ends."""
        self._stop()

    def turn_off(self) -> None:
        """After an error: nobody looks any more."""
        self._stop()

    def begins(self, name: str, module: nn.Module) -> None:
        """A part of a model is called."""
        self._inside += 1
        if self._inside == 1 and self._watching.clock.calls.depth == 0 and _counts():
            self._seen.append((name, weakref.ref(module)))

    def ends(self) -> None:
        """It has returned, or raised."""
        self._inside = max(0, self._inside - 1)

    def _look(self) -> None:
        """Hooks on every part, in the next step."""
        self._looking = hooks = Attachment(Owner(self._hooks.owner.name))
        # Code that is compiled with them would be compiled again when they go.
        hooks.add(WhenCompiling(self._stop))
        for name, parts in self._models.items():
            for part in parts:
                module = part()
                if module is not None:
                    hooks.forward_pre(module, _Enters(self, hooks.owner, self._hooks.owner, name))
                    leaves = _Leaves(self, hooks.owner, self._hooks.owner, name)
                    hooks.forward(module, leaves, always_call=True)
        self._hooks.add(hooks)

    def _stop(self) -> None:
        self.off = True
        self._seen = []
        self._found = None  # it holds the models, and would keep them alive after the watch
        self._take_off()

    def _take_off(self) -> None:
        hooks, self._looking = self._looking, None
        if hooks is not None:
            hooks.remove()


def _counts() -> bool:
    """Whether a call that begins now is a forward of the training."""
    return (
        torch.is_grad_enabled() and backward_id() == -1 and not in_transform() and not is_tracing()
    )


class _Around(Hook):
    """Around the call of a part."""

    __slots__ = ("_doors", "_name", "_watch")

    def __init__(self, doors: Doors, owner: Owner, watch: Owner, name: str) -> None:
        super().__init__(owner, name)
        self._doors = doors
        self._watch = watch
        self._name = name

    def sees(self, module: nn.Module) -> bool:
        """Whether the call is one of the watch's."""
        if torch.compiler.is_compiling() or not self.owner.alive or self._doors.off:
            return False
        return _thread() == self._watch.thread or not elsewhere(self._watch, module)


class _Enters(_Around):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, kwargs: Any = None) -> None:
        if self.sees(module):
            self._doors.begins(self._name, module)


class _Leaves(_Around):
    __slots__ = ()

    def __call__(self, module: nn.Module, *given: Any) -> None:
        if self.sees(module):
            self._doors.ends()
