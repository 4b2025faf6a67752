"""Which function checks which private name of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Canary = Callable[[], bool]

CANARIES: Final[dict[str, Canary]] = {}
"""The check of each private name, by its path."""


def canary(*paths: str) -> Callable[[Canary], Canary]:
    """The function checks these names."""

    def keep(check: Canary) -> Canary:
        for path in paths:
            CANARIES[path] = check
        return check

    return keep
