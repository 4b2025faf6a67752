"""Parameters that lie in one piece of CPU memory: the native kernel measures them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from nethook.runs.names import PARAM_GRADS, PARAMS, UNCLIPPED, UPDATES
from nethook.stats.tables import Table, lies_flat, start_of
from nethook.torch_private import local_of
from nethook.watching.journal import Journal
from nethook.watching.measuring.parameter_facts import ParameterFacts

_QUANTITIES: Final = (PARAMS, PARAM_GRADS, UNCLIPPED, UPDATES)


class ParametersChangedError(Exception):
    """A parameter is not the tensor any more that it was: the set is made anew."""


class FlatParameters:
    """Those of some parameters that lie flat: each is a line of every table.

    Arguments:
        journal: where their numbers go.
        parameters: facts of all, also of those that do not.
    """

    def __init__(self, journal: Journal, parameters: Sequence[ParameterFacts]) -> None:
        self.facts = [facts for facts in parameters if _is_flat(facts)]
        self.parameters = [facts.parameter for facts in self.facts]
        self._tensors = [facts.local for facts in self.facts]
        self.sizes = [facts.local.nbytes for facts in self.facts]
        self._spread = [facts for facts in parameters if facts.held is not None]
        # Squares of a part count as many times as there are parts: see `runs.reading.merge_ranks`.
        self._parts = np.array([facts.part.parts for facts in self.facts], np.float64)
        self._into = journal.train
        self._rows: dict[str, list[int]] = {name: [] for name in _QUANTITIES}
        for facts in self.facts:  # all of one parameter stand side by side in the run
            info = facts.info(journal.options.world)
            for quantity, rows in self._rows.items():
                rows.append(journal.row(facts.address, quantity, info) or 0)

    def table(self, quantity: str | None = None) -> Table:
        """A table with a line for each; without a quantity it is not to be folded."""
        table = Table(self._into, len(self.facts))
        rows = [0] * len(self.facts) if quantity is None else self._rows[quantity]
        for line, row in enumerate(rows):
            table.set(line, row, self._tensors[line])
        return table

    def find(self, table: Table) -> None:
        """Where the weights lie; those in other memory, of another size, are measured otherwise."""
        if not table.find(self._tensors):
            raise ParametersChangedError
        for spread in self._spread:
            if local_of(spread.parameter) is not spread.held:
                raise ParametersChangedError

    def find_grads(self, table: Table, counts: npt.NDArray[np.int64] | None = None) -> list[int]:
        """Where the gradients lie that lie flat.

        Arguments:
            table: that is to read them.
            counts: of each line, how often one was found.

        Returns:
            The lines of gradients that are there and do not lie flat.
        """
        others = table.find_grads(self.parameters, 0 if counts is None else counts.ctypes.data)
        left = []
        for line in others:
            facts = self.facts[line]
            # That of a sharded parameter is sharded, too; its part in this process may lie flat.
            grad = facts.grad if facts.held is not None else None
            if (
                grad is not None
                and lies_flat(grad)
                and grad.nbytes == self.sizes[line]
                and grad.dtype is facts.local.dtype
                and grad.is_contiguous()
            ):
                table.address[line] = start_of(grad)
                if counts is not None:
                    counts[line] += 1
            else:
                left.append(line)
        return left

    def square_of(self, table: Table) -> float:
        """The squares of all lines; those of a part count once for each part there is."""
        return float(table.squares @ self._parts) if self._spread else table.square


def _is_flat(facts: ParameterFacts) -> bool:
    local = facts.local
    return lies_flat(local) and bool(local.numel()) and local.is_contiguous()
