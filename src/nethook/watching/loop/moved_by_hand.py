"""Weights that are moved by hand: noted as a backward pass begins, compared as the next does."""

from __future__ import annotations

from typing import Any

from nethook.watching.loop.held_parameters import HeldParameters
from nethook.watching.measuring.witnesses import Witnesses


class MovedByHand:
    """Whether weights have changed since a backward pass, where no optimizer has stepped.

    Arguments:
        held: the parameters of the models.
    """

    def __init__(self, held: HeldParameters) -> None:
        self._held = held
        self._noted: tuple[Witnesses, list[int], list[Any]] | None = None

    def note(self) -> None:
        """A backward pass begins, and no optimizer has stepped so far: notes what weights are."""
        if self._noted is None:
            witnesses = Witnesses(
                [facts.local for facts in self._held.all if facts.parameter.requires_grad]
            )
        else:
            witnesses = self._noted[0]
        self._noted = witnesses, witnesses.versions(), witnesses.some_weights()

    def have_moved(self) -> bool:
        """Whether weights have changed since the last backward pass began."""
        if self._noted is None:
            return False
        witnesses, versions, weights = self._noted
        return witnesses.versions() != versions or witnesses.have_changed(weights)
