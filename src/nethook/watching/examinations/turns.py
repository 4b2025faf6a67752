"""Which line of the script calls `backward` next, and whether a step of it is to be examined.

A training has few such lines, and they take turns: what came after a line once comes after it
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIRST: Final = 2
"""Backward passes of a line before the one that is examined."""
MOST_EXAMS: Final = 4
"""Steps that are examined in a run, its end aside."""
MOST_TRIES: Final = 3
"""Passes in which a line may turn out to be another one than was expected."""
PATIENCE: Final = 256
"""Backward passes after which lines that are rare are not waited for."""
MOST_CALLS: Final = 3
"""Calls of models in one pass that are copied, one after the other, until the last one is known."""

Place = tuple[str, int]
"""File and line."""


@dataclass(slots=True)
class OfLine:
    """What is known of a line that calls `backward`."""

    name: str
    passes: int = 0
    calls: int = 1  # of models, before its last pass
    tries: int = 0
    done: bool = False

    @property
    def waits(self) -> bool:
        """Whether its next step is to be examined, or one soon after."""
        return not self.done and self.tries < MOST_TRIES


class Turns:
    """The lines that have called `backward`, in the order in which they follow each other."""

    def __init__(self) -> None:
        self.lines: dict[Place, OfLine] = {}
        self.exams = 0
        """Steps that were chosen so far."""
        self.calls = 0
        """Of models since the last backward pass."""
        self.copies = 0
        """Those of them that were kept."""
        self._after: dict[Place, Place] = {}
        self._last: Place | None = None
        self._passes = 0

    def begins(self, place: Place, name: str) -> OfLine:
        """A line calls `backward`."""
        line = self.lines.get(place)
        if line is None:
            line = self.lines[place] = OfLine(name)
        line.passes += 1
        line.calls = self.calls
        if self._last is not None:
            self._after[self._last] = place
        self._last = place
        self._passes += 1
        self.calls = self.copies = 0
        return line

    @property
    def next(self) -> OfLine | None:
        """The line that will call `backward` next, as far as is known."""
        following = None if self._last is None else self._after.get(self._last)
        return None if following is None else self.lines[following]

    @property
    def wanted(self) -> bool:
        """Whether the call that begins is to be kept: it may be the last one before such a line."""
        line = self.next
        if line is None or not line.waits or line.passes < FIRST or self.exams >= MOST_EXAMS:
            return False
        return self.copies < MOST_CALLS and self.calls >= line.calls

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for."""
        if self.exams >= MOST_EXAMS or self._passes >= PATIENCE:
            return True
        return bool(self.lines) and not any(line.waits for line in self.lines.values())

    def again(self, *, all_lines: bool) -> None:
        """Something new has appeared: a line, or with `all_lines` what all of them train."""
        self._passes = 0
        if all_lines:
            for line in self.lines.values():
                line.done, line.tries = False, 0

    @property
    def why_never(self) -> str:
        """Why no step was chosen."""
        if not self.lines:
            return "no backward pass was seen"
        if not any(line.passes > FIRST for line in self.lines.values()):
            return f"no loss had more than {FIRST} backward passes"
        return "no watched model was called as a whole before its loss"
