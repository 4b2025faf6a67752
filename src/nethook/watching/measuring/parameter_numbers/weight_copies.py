"""Memory for copies of weights, from before a step to after it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class WeightCopies:
    """Memory for copies of weights, of at most so many bytes: above, parameters take turns.

    Arguments:
        sizes: bytes of each parameter.
        cap: bytes of one turn.
    """

    def __init__(self, sizes: Sequence[int], cap: int) -> None:
        self._sizes = [-(-size // 64) * 64 for size in sizes]
        self._chunks: list[list[int]] = [[]]
        room = 0
        for line, size in enumerate(self._sizes):
            if size > cap:
                continue  # no turn is long enough for it
            if room + size > cap:
                self._chunks.append([])
                room = 0
            self._chunks[-1].append(line)
            room += size
        most = max(sum(self._sizes[line] for line in chunk) for chunk in self._chunks)
        self._memory = np.empty(most + 64, np.uint8) if most else np.empty(0, np.uint8)
        self._start = -(-self._memory.ctypes.data // 64) * 64
        self._next = 0
        self._turned = False
        self.turns = len(self._chunks)
        self.memory = most
        self.current = np.zeros(len(sizes), np.int64)

    def turn(self) -> bool:
        """Says where the copies of the next turn go (`current`): 0 for parameters not in it.

        False where that is the same as in the last turn.
        """
        if self._turned and self.turns == 1:
            return False
        self._turned = True
        self.current[...] = 0
        address = self._start
        for line in self._chunks[self._next]:
            self.current[line] = address
            address += self._sizes[line]
        self._next = (self._next + 1) % len(self._chunks)
        return True
