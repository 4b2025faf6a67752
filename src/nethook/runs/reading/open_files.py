"""How many files of a run are open at once: a run may have more ranks than a process may open."""

from __future__ import annotations

import threading
import weakref
from typing import Final, Protocol

MOST: Final = 64
"""Files of one run that are open at once. Most systems allow a process 1,024 in all."""


class Restable(Protocol):
    """An open file that can be closed for a while."""

    def rest(self) -> bool:
        """Close it if nobody uses it now; whether that was so."""


class OpenFiles:
    """Which files are open, in the order in which they were last used."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._used: dict[int, weakref.ref[Restable]] = {}

    def use(self, file: Restable) -> None:
        """Note that a file is used now. Where too many are open, the one used longest ago rests."""
        with self._lock:
            self._used.pop(id(file), None)
            self._used[id(file)] = weakref.ref(file)
            for key in list(self._used)[: max(0, len(self._used) - self._most)]:
                other = self._used[key]()
                if other is None or other.rest():  # one that another thread reads stays open
                    del self._used[key]
