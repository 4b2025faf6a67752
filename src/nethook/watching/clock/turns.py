"""The turns of optimizers: a step of the loop ends when each that takes part has had its turn.

Which take part is known from the optimizers that hold the parameters, and learned from the steps:
where one steps again before the others have, twice in a row in the same way, those others do not
take part in every step (a critic that is trained more often than its generator).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

NOBODY: Final[frozenset[int]] = frozenset()


class Turns:
    """Who has stepped in this step, and whose step is under way.

    Optimizers are known by numbers, whatever these are. Where several threads are followed,
    `inside` and `begun` are those of the thread that asks: see `watching/threads.py`.
    """

    def __init__(self) -> None:
        self.inside = 0
        """Steps of optimizers under way, one inside the other: one may be part of another."""
        self.begun: int | None = None
        """Whose step is under way: the outermost, if it is one that takes part."""
        self.thread = 0
        """The thread that it is under way in."""
        self.taken: frozenset[int] = NOBODY
        """Those that have had their turn in this step."""
        self.counts: dict[int, int] = {}
        """Steps of each so far."""
        self._expected: set[int] = set()
        self.only: int | None = None
        """The one that takes part, where no other does, ..."""
        self.alone: frozenset[int] = NOBODY
        """... and those that have had their turn once it has, if nobody had before."""
        self._cut_short: frozenset[int] = NOBODY  # those of the last step that was ended by force

    def join(self, key: int) -> None:
        """One more takes part."""
        self.counts[key] = 0  # another that is gone may have had this key
        self._expected.add(key)
        self._count()

    def leave(self, key: int) -> None:
        """One is gone."""
        self._expected.discard(key)
        self.taken -= {key}
        self._count()

    def _count(self) -> None:
        """Other optimizers take part than before."""
        expected = self._expected
        self.only = next(iter(expected)) if len(expected) == 1 else None
        self.alone = frozenset(expected)

    def begins(self) -> bool:
        """A step of any optimizer begins; whether it is an outermost one."""
        self.inside += 1
        return self.inside == 1

    def ends(self) -> None:
        """A step has ended that is part of another, or of an optimizer that does not matter."""
        self.inside = max(0, self.inside - 1)

    def interrupted(self, under_way: int) -> int | None:
        """Steps have ended without a word, but for so many: whose, if it was the outermost one."""
        begun = self.begun
        self.inside = under_way
        if under_way:
            return None
        self.begun = None
        return begun

    def is_last(self, key: int, gone: Collection[int] = ()) -> bool:
        """Whether the step of the loop is over once this one has had its turn.

        Arguments:
            key: the one whose turn it is.
            gone: those that are not there any more, and are not waited for.
        """
        return self._expected - self.taken <= {key, *gone}

    def cut_short(self) -> None:
        """One steps for the second time: those that have not, may not take part in every step.

        Once may be an accident (an exception between two steps of a pair); twice in a row is how
        the loop is written.
        """
        if self.taken == self._cut_short:
            self._expected = set(self.taken)
            self._count()
        self._cut_short = self.taken
