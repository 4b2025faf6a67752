"""What gradients are multiplied by: the factor of a loss scaler, and ranks that average them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nethook.runs import names
from nethook.watching.journal import Journal
from nethook.watching.measuring.loop_numbers import LoopNumbers


class GradientScale:
    """What a gradient has to be multiplied with, to be that of the loss as the script means it.

    Arguments:
        ranks_of: says over how many ranks the gradients of a model are averaged; None: over one.
    """

    def __init__(self, ranks_of: Callable[[nn.Module], int] | None = None) -> None:
        self._ranks_of = ranks_of
        self.has_ranks = ranks_of is not None
        self._noted: float | None = None
        self.next: torch.Tensor | float | None = None
        """The factor of the loss whose backward pass comes next; None where it has none."""
        self.last: torch.Tensor | float | None = None
        """The factor of the last loss scaler that was seen."""
        self.on = False
        """Whether the gradients of parameters have that factor now."""
        self.ranks = 1
        """Ranks that average their gradients."""
        self.unscale: Any = 1.0
        """One by the factor; a tensor where the scaler's is on a device."""
        self.factor: Any = 1.0
        """The same, by the number of ranks."""
        self.is_one = True
        """Whether neither was ever anything else: then there is nothing to ask at a pass."""

    def forward_begins(self, model: nn.Module) -> None:
        """A model is called with gradients; asked while it is, for then its wrappers know."""
        if self._ranks_of is not None:
            self.is_one = False
            self.ranks = self._ranks_of(model)

    def noted(self, scale: float) -> float | None:
        """The factor is written down; what it was before, if that was another."""
        before, self._noted = self._noted, scale
        return None if before == scale else before

    def write_down(self, journal: Journal, numbers: LoopNumbers) -> None:
        """Notes the last factor, where it is known, and an event where it has changed."""
        if not isinstance(self.last, float):
            return
        numbers.set(names.LOSS_SCALE, self.last)
        before = self.noted(self.last)
        if before is not None:
            message = f"the loss scale went from {before:g} to {self.last:g}"
            data = {"before": before, "after": self.last}
            journal.note_event(names.SCALE_CHANGED, message, data=data)

    def loss_scaled(self, scale: torch.Tensor | float) -> None:
        """A loss was multiplied; the next backward pass is of that."""
        self.last = self.next = scale
        self.is_one = False

    def backward_begins(self) -> torch.Tensor | float | None:
        """A backward pass begins; the factor of its loss."""
        scale, self.next = self.next, None
        self.unscale = 1.0
        if scale is not None:
            self.on = True
            self.unscale = 1.0 / scale
        self.factor = self.unscale / self.ranks
        return scale

    def removed(self) -> None:
        """Gradients have no factor any more: unscaled, used or cleared."""
        self.on = False
