"""Histograms on their way to trackers: added up for half a minute, then sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from nethook.runs import names
from nethook.sinks.sink import Counts
from nethook.sinks.tags import series_tag
from nethook.stats.fields import BINS
from nethook.stats.sheet import Sheet

SHOWN: Final = (names.OUTPUTS, names.GRADS, names.PARAMS, names.PARAM_GRADS, names.UPDATES)
"""Quantities whose histograms are shown."""
EVERY: Final = 30.0
"""Seconds between two sets of histograms."""


class Histograms:
    """Counts of training since the last set. Cost: 5 KB per series."""

    def __init__(self) -> None:
        self._counts: Counts = np.zeros((0, BINS), dtype=np.int64)
        self._sent = time.monotonic()
        self.step = -1
        """The last step that is in them."""

    def add(self, window: Sheet) -> None:
        """The histograms of a window, and of those before it that had left theirs to it."""
        if window.phase != "train" or not window.carries:
            return
        series = len(window.layout)
        if series > len(self._counts):
            more = np.zeros((series - len(self._counts), BINS), dtype=np.int64)
            self._counts = np.concatenate((self._counts, more))
        for mine, theirs in window.runs:
            counts = window.histograms[mine]
            room = self._counts[theirs]
            room += counts[: len(room)]
        self.step = max(self.step, window.last_step)

    def take(
        self, keys: Sequence[tuple[str, str]], *, now: bool = False
    ) -> Iterator[tuple[str, Counts]]:
        """The tag and the counts of each series that is shown, if it is time."""
        if not now and time.monotonic() - self._sent < EVERY:
            return
        self._sent = time.monotonic()
        for row, (address, quantity) in enumerate(keys[: len(self._counts)]):
            if quantity in SHOWN and self._counts[row].any():
                yield series_tag(address, quantity), self._counts[row].copy()
        self._counts[...] = 0
