"""When data loaders start anew: what an epoch is, where a script does not log it.

Noted is what was done so far at each start, and how many batches the loader has. Whether that is an
epoch is decided by whoever reads it (`figures.epochs`), for it takes the whole run.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from torch.utils.data import DataLoader, IterableDataset

from nethook.hooks.hook import Owner
from nethook.hooks.process.loaders import LoaderStarts
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder

MOST_LOADERS: Final = 8
MOST_STARTS: Final = 256
"""Starts of a loader that are kept: of more, every second, every fourth …"""


class LoaderPasses(FailsAlone, Recorder):
    """Notes the starts of data loaders.

    Arguments:
        journal: of the watch.
        owner: of the hook on data loaders.
    """

    part = "passes over data loaders"

    def __init__(self, journal: Journal, owner: Owner) -> None:
        self._watching: Journal = journal
        self._kept: dict[tuple[int, int], _Starts] = {}
        self._changed = False
        self.loaders = LoaderStarts(owner, self._started)
        """The hook; whoever takes off the hooks of the watch takes it off, too."""
        self.loaders.put_on()

    @contained
    def end_window(self) -> None:
        """What is new goes to the file."""
        self._write()

    @contained
    def close(self) -> None:
        """Watching ends."""
        self._write()
        self.loaders.remove()

    def turn_off(self) -> None:
        """After an error."""
        self.off = True
        self.loaders.remove()

    @contained
    def _started(self, loader: DataLoader[Any]) -> None:
        batches = _batches(loader)
        # A script may make a loader for every epoch: the data set stays.
        key = id(loader.dataset), batches
        if batches < 1 or (key not in self._kept and len(self._kept) >= MOST_LOADERS):
            return
        clock = self._watching.clock
        self._kept.setdefault(key, _Starts()).add(clock.totals["forwards"], clock.step)
        self._changed = True

    def _write(self) -> None:
        if not self._changed:
            return
        self._changed = False
        found = [
            {"batches": batches, "starts": [list(start) for start in starts.kept]}
            for (_, batches), starts in self._kept.items()
        ]
        self._watching.writer.info(loaders=found)


class _Starts:
    """Of one loader: the number of a start, calls of the model in training so far, and the step."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, int, int]] = []
        self._count = 0
        self._every = 1

    def add(self, forwards: int, step: int) -> None:
        """It starts again."""
        if self._count % self._every == 0:
            self.kept.append((self._count, forwards, step))
        self._count += 1
        if len(self.kept) > MOST_STARTS:
            self.kept = self.kept[::2]
            self._every *= 2


def _batches(loader: DataLoader[Any]) -> int:
    """Of a whole pass; 0 where that is not known."""
    if isinstance(loader.dataset, IterableDataset):  # to be asked changes it
        return 0
    with suppress(Exception):  # a sampler of the script's need not have a length
        return len(loader)
    return 0
