"""A sample of coordinates of each flat parameter: whether updates go the way of those before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nethook.runs.names import UPDATE_COSINE
from nethook.stats.tables import Follower, Numbers
from nethook.watching.journal import Journal
from nethook.watching.measuring.parameter_numbers.flat_parameters import FlatParameters


class FlatCosines:
    """Cosines of each update of flat parameters with the one before.

    Arguments:
        flat: the parameters.
        journal: where the cosines go.
    """

    def __init__(self, flat: FlatParameters, journal: Journal) -> None:
        self._flat = flat
        self._table = flat.table()
        self._follower = Follower(self._table)
        world = journal.options.world
        rows = [
            journal.row(facts.address, UPDATE_COSINE, facts.info(world)) or 0
            for facts in flat.facts
        ]
        self._cosines = Numbers(journal.train, rows)
        self._located = False  # whether it is known where the weights lie after this step
        self._looked_at = -2

    def lie_at(self, addresses: npt.NDArray[np.int64]) -> None:
        """Says where the weights lie, to whom would ask for it again."""
        self._table.address[:] = addresses
        self._located = True

    def find(self, step: int) -> bool:
        """Asks where the weights lie; whether the last look was in the step before this one."""
        if not self._located:
            self._flat.find(self._table)
        self._located = False
        return step == self._looked_at + 1

    def look(self, step: int) -> None:
        """Takes the sample again, and the cosines where there were two updates in a row."""
        if step != self._looked_at + 1:
            self._follower.restart()  # there was a step in between
        self._looked_at = step
        if self._follower.look():
            self._cosines.values[:] = self._follower.cosines
            self._cosines.fold()
