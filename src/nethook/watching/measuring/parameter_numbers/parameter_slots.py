"""Where the numbers of parameters go that are measured by themselves."""

from __future__ import annotations

import torch

from nethook.stats.native import readable
from nethook.stats.rows import Slot
from nethook.stats.summary import summarise
from nethook.watching.journal import Journal
from nethook.watching.measuring.device_parameters import is_away
from nethook.watching.measuring.parameter_facts import ParameterFacts


class ParameterSlots:
    """The slots of parameters, made when they are first used.

    Arguments:
        journal: where their numbers go.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._slots: dict[tuple[str, str], Slot] = {}

    def of(self, facts: ParameterFacts, quantity: str) -> Slot:
        """The slot of one quantity of a parameter."""
        key = (facts.address, quantity)
        slot = self._slots.get(key)
        if slot is None:
            row = self._journal.row(*key, facts.info(self._journal.options.world))
            slot = self._journal.train.slot(0 if row is None else row)
            self._slots[key] = slot
        return slot

    def measure(
        self, facts: ParameterFacts, quantity: str, tensor: torch.Tensor, factor: float = 1.0
    ) -> float:
        """Folds a tensor into its slot.

        Returns:
            The sum of its squares, once for each part that there is of the parameter.
        """
        self.of(facts, quantity).fold(tensor, factor)
        return _square(tensor, factor) * facts.part.parts


def _square(tensor: torch.Tensor, factor: float) -> float:
    """The sum of a tensor's squares; NaN, a number that is not there, where it has none.

    What lies on a device is not asked: `Away` has its squares.
    """
    if is_away(tensor) and readable.kind(tensor) is None:
        return 0.0
    if tensor.device.type != "cpu" or readable.kind(tensor) is not None:
        return float("nan")
    return (summarise(tensor.detach(), histogram=False).norm * factor) ** 2
