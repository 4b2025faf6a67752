"""What devices tell later: what was not finite in a step, and counts that nobody waits for."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from nethook.stats.transfers import Done, Transfers
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder


class FlagReader(Protocol):
    """The flight recorder, as it is told here."""

    @property
    def call(self) -> Any:
        """The outermost call that is or was under way."""

    def device_flags(
        self, step: int, call: Any, keys: Sequence[tuple[str, str]], skipped: bool | None
    ) -> None:
        """A device tells what was not finite in a step that is over."""


class DeviceFlags(FailsAlone, Recorder):
    """Compares what devices count from step to step; a count only grows within a window."""

    part = "what devices tell later"

    def __init__(self, journal: Journal, flight: FlagReader) -> None:
        self._watching: Journal = journal
        self._flight = flight
        self.off = False
        self._window = 0  # its number
        self._transfers = Transfers()
        self._counts: dict[int, tuple[int, list[float]]] = {}  # device -> window, counts of rows

    @contained
    def put(self, vector: torch.Tensor, done: Done) -> None:
        """Hands numbers on when they are known: at once, where they lie on the CPU."""
        self._transfers.put(vector, done)

    def ask(self, step: int) -> None:
        """A step has ended: asks each device which series were not finite in it."""
        if self._transfers.under_way or self._watching.train.has_devices:
            self._ask(step)

    @contained
    def _ask(self, step: int) -> None:
        journal, flight = self._watching, self._flight
        self._transfers.poll()
        used = len(journal.catalogue.keys)
        for device, counts in enumerate(journal.train.non_finite()):
            told = functools.partial(
                self._tells, device, self._window, step, flight.call, journal.clock.skipped
            )
            self._transfers.put(counts[:used], told)

    def end_window(self) -> None:
        """A window ends, and devices are waited for anyway."""
        self._fetch()
        self._window += 1

    @contained
    def _fetch(self) -> None:
        self._transfers.fetch()

    @contained
    def flush(self) -> None:
        """Watching ends: waits for what is still on its way."""
        self._transfers.flush()

    def turn_off(self) -> None:
        """After an error: nothing is asked any more."""
        self.off = True
        self._transfers = Transfers()

    def _tells(
        self, device: int, window: int, step: int, call: Any, skipped: bool | None,
        counts: list[float],
    ) -> None:  # fmt: skip
        """The counts of a step have come."""
        of_window, before = self._counts.get(device, (window, []))
        before = before if of_window == window else []
        self._counts[device] = (window, counts)
        odd = [
            row
            for row, count in enumerate(counts)
            if count > (before[row] if row < len(before) else 0)
        ]
        keys = [self._watching.catalogue.keys[row][:2] for row in odd]
        self._flight.device_flags(step, call, keys, skipped)
