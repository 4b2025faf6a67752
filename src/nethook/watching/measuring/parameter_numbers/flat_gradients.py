"""Gradients of parameters that lie flat, and the look for NaN in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from nethook.runs.names import PARAM_GRADS, UNCLIPPED
from nethook.watching.journal import Flags
from nethook.watching.measuring.parameter_numbers.flat_parameters import FlatParameters
from nethook.watching.measuring.parameter_numbers.parameter_slots import ParameterSlots

PROBED: Final = 2
"""Of the first so many parameters, which the gradients of all later layers flow into, the smallest
that has a gradient is looked at for NaN in each step."""

MOST_LOOKED: Final = 1024
"""Elements of one gradient that are looked at for NaN in a step in which it is not measured."""


class FlatGradients:
    """The gradients of flat parameters, which may not lie flat themselves.

    Arguments:
        flat: the parameters.
        slots: where gradients go that do not lie flat.
        flags: who is told of NaN.
    """

    def __init__(self, flat: FlatParameters, slots: ParameterSlots, flags: Flags) -> None:
        self._flat = flat
        self._slots = slots
        self._flags = flags
        self._table = flat.table(PARAM_GRADS)
        self._unclipped = flat.table(UNCLIPPED)
        self._factor = 1.0
        self._looked = 0
        self._with_grad = np.zeros(len(flat.facts), np.int64)
        self.empty = 0
        """Parameters without a gradient, and, where that was measured, with one of zeros."""
        first = range(len(flat.parameters))[:PROBED]
        lines = sorted(first, key=lambda line: flat.parameters[line].numel())
        probed = [flat.parameters[line] for line in lines]
        self.seems_odd = self._table.prober(probed, lines, MOST_LOOKED)
        """Whether a gradient is not finite, in so far as one can tell for all: `Table.prober`."""

    def find(self, factor: float, measure: bool) -> float:
        """Asks where the gradients lie. `fold` comes next, or `look`.

        Returns:
            The sum of squares of those that do not lie flat, which are measured here.
        """
        self._looked += 1
        left = self._flat.find_grads(self._table, self._with_grad)
        if left:  # sparse, or not in one piece: a gradient like any other
            self._with_grad[left] += 1
        self.empty = len(self._flat.facts) - int(np.count_nonzero(self._table.address)) - len(left)
        return self._measure(left, PARAM_GRADS, factor) if measure else 0.0

    def _measure(self, lines: Iterable[int], quantity: str, factor: float) -> float:
        """Those that do not lie flat, one by one; the sum of squares."""
        square = 0.0
        for line in lines:
            facts = self._flat.facts[line]
            grad = facts.grad
            if grad is not None:
                of_grad = self._slots.measure(facts, quantity, grad, factor)
                self.empty += quantity == PARAM_GRADS and of_grad == 0.0
                square += of_grad
        return square

    def fold(self, factor: float) -> tuple[int, float]:
        """Measures those that lie flat: how many elements are not finite, the sum of squares."""
        if factor != self._factor:
            self._table.lines["factor"] = self._factor = factor
        odd = self._table.fold()
        self.empty += self._table.zeros
        return odd, self._flat.square_of(self._table)

    def look(self) -> int:
        """Looks for NaN in a part of each, and no more: how many have some."""
        return self._table.count_odd(MOST_LOOKED, self._looked)

    def find_odd(self) -> None:
        """One of them seems odd: looks through them all, and tells."""
        self._flat.find_grads(self._table)
        self._table.count_odd()
        self.flag_odd()

    def flag_odd(self) -> None:
        """Tells of those in which something was found that is not finite."""
        for line in np.flatnonzero(self._table.odd).tolist():
            facts = self._flat.facts[line]
            self._flags.flag(facts.address, PARAM_GRADS, None, None, facts.grad)

    def unclipped(self, factor: float) -> None:
        """Reads the gradients before they are clipped."""
        table = self._unclipped
        self._measure(self._flat.find_grads(table), UNCLIPPED, factor)
        table.lines["factor"] = factor
        table.fold()

    def settle(self) -> None:
        """Brings the facts of each up to date."""
        for facts, with_grad in zip(self._flat.facts, self._with_grad.tolist(), strict=True):
            facts.steps = self._looked
            facts.with_grad = with_grad
