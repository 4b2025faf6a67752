"""Weights that lie flat, and what a step adds to them.

Before a step one pass reads the weights and copies them; after it one reads what was added.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nethook.runs.names import PARAMS, UPDATES
from nethook.watching.journal import Options
from nethook.watching.measuring.parameter_numbers.flat_parameters import FlatParameters
from nethook.watching.measuring.parameter_numbers.weight_copies import WeightCopies


class FlatWeights:
    """The weights of flat parameters, before and after a step.

    Arguments:
        flat: the parameters.
        options: whether updates are wanted, and how much memory copies may take.
    """

    def __init__(self, flat: FlatParameters, options: Options) -> None:
        self._flat = flat
        self._before = flat.table(PARAMS)
        self._after = flat.table(UPDATES)
        self._copies = WeightCopies(flat.sizes, options.snapshot_cap)
        self._left_out = np.zeros(0, np.int64)  # lines whose update is not measured in this turn
        self._moved = np.zeros((2, len(flat.facts)), np.int64)
        self._wants_updates = "updates" in options.wanted
        self.copied = False
        """Whether it is known what they were before the step."""

    def read(self) -> float:
        """Reads the weights, and keeps what is needed to tell the update; the sum of squares."""
        self._flat.find(self._before)
        if self._wants_updates and self._copies.turn():
            self._before.lines["copy"] = self._copies.current
            self._after.lines["minus"] = self._copies.current
            self._left_out = np.flatnonzero(self._copies.current == 0)
        self._before.fold()
        self.copied = self._wants_updates
        return self._flat.square_of(self._before)

    def find(self) -> npt.NDArray[np.int64]:
        """The step has been done: where each lies now. `updates` comes next."""
        self.copied = False
        self._flat.find(self._after)
        return self._after.address

    def updates(self) -> float | None:
        """Reads what the step has added; the sum of squares, None where some had no turn."""
        if len(self._left_out):
            self._after.address[self._left_out] = 0
        self._after.fold(self._moved.ctypes.data)
        return None if len(self._left_out) else self._flat.square_of(self._after)

    def settle(self) -> None:
        """Brings the facts of each up to date."""
        for facts, times, measured in zip(self._flat.facts, *self._moved.tolist(), strict=True):
            facts.moved = [times, measured]

    @property
    def turns(self) -> int:
        """Steps that it takes until every update was measured."""
        return self._copies.turns

    @property
    def memory(self) -> int:
        """Bytes of the copies."""
        return self._copies.memory
