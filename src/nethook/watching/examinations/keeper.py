"""The call of a model that is kept, because it may be the last one before the loss to examine."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

if TYPE_CHECKING:
    from nethook.addresses.inputs import Inputs
    from nethook.examining.batch_facts import BatchFacts
    from nethook.examining.keeping import KeptCall
    from nethook.examining.rehearsal import Material


class Taken(NamedTuple):
    """A step that was kept, up to its backward pass."""

    material: Material
    model: str
    module: weakref.ref[nn.Module]


class Keeper:
    """Keeps one call at a time.

    Arguments:
        took: is told how many seconds recording took inside the script's own functions.
    """

    def __init__(self, took: Callable[[float], None]) -> None:
        self._took = took
        self._kept: KeptCall | None = None
        self._of: tuple[str, weakref.ref[nn.Module]] | None = None  # whose call it is
        self._leftover: KeptCall | None = None  # one whose mode torch will put back once more
        self._began = 0.0
        self.forward = 0.0
        """Seconds that the last call of a model took."""

    @property
    def holds(self) -> bool:
        """Whether a call is kept."""
        return self._kept is not None

    def call_begins(self) -> None:
        """A model is called, and all that is to be done before has been done."""
        self._began = time.perf_counter()

    def call_ends(self, module: nn.Module) -> bool:
        """It has returned; says whether this is the call that is kept."""
        self.forward = time.perf_counter() - self._began
        return self._kept is not None and self._of is not None and self._of[1]() is module

    def returned(self, output: Any) -> None:
        """What the call that is kept has returned."""
        if self._kept is not None:
            self._kept.returned(output)

    def keep(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Keeps a call that begins; raises `NotReplayableError` where it cannot be run again."""
        from nethook.examining.keeping import KeptCall

        self._kept = KeptCall(module, args, kwargs)
        self._of = (model, weakref.ref(module))

    def take(
        self, roots: Sequence[torch.Tensor], facts: Callable[[Inputs], BatchFacts]
    ) -> Taken | None:
        """The step that was kept; None where there is none.

        Arguments:
            roots: what its backward pass begins at.
            facts: what is known of the batch that the model was called with.
        """
        kept, of = self._kept, self._of
        if kept is None or of is None:
            return None
        self._took(kept.recording_seconds)
        material = kept.backward(roots, facts(kept.inputs))
        material.seconds = self.forward
        self._leftover, self._kept, self._of = kept, None, None
        return Taken(material, *of)

    def drop(self) -> None:
        """The call that was kept is not the last one before a loss, or there was none."""
        if self._kept is not None:
            self._took(self._kept.recording_seconds)
            if not self._kept.drop():
                self._leftover = self._kept
        self._kept = self._of = None
        self.sweep()

    def sweep(self) -> None:
        """Takes away what the last call has left, now that torch has put its mode back."""
        if self._leftover is not None and self._leftover.drop():
            self._leftover = None

    def let_go(self) -> None:
        """Nothing is kept any more."""
        for kept in (self._kept, self._leftover):
            if kept is not None:
                self._leftover = None if kept.drop() else kept
        self._kept = self._of = None
