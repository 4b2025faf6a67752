"""Which of many records are kept: the first ones, later on ever fewer."""

from __future__ import annotations

from typing import Final

OFTEN: Final = 4
THINNING: Final = 1.25
"""The first steps and passes have records, then every one that is so much further."""


class Thinning:
    """Counts, and says which are kept."""

    __slots__ = ("_kept", "_seen")

    def __init__(self) -> None:
        self._seen = 0
        self._kept = 0  # the number of the last one that was kept

    def takes(self) -> bool:
        """One more; whether it is kept."""
        self._seen += 1
        if self._seen > OFTEN and self._seen < THINNING * self._kept:
            return False
        self._kept = self._seen
        return True
