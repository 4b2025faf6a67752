"""What is done at the end of a step, one thing after the other, each of them once.

An interrupt may come in the midst of it. Then the thing that it came in is done again, and what was
done before is not: so each must be such that doing it twice makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Part = Callable[[int], object]


class StepEnd:
    """The parts that are left to do."""

    def __init__(self) -> None:
        self._left: list[Part] = []

    def begin(self, parts: Sequence[Part]) -> None:
        """A step ends."""
        self._left = [*reversed(parts)]

    def go_on(self, step: int) -> None:
        """Does what is left of it."""
        left = self._left
        while left:
            left[-1](step)
            left.pop()  # not before: an interrupt may come in between
