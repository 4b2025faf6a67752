"""What was not finite on a device: asked at the end of each step, told in a later one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nethook.watching.session import Session


class DeviceFlags:
    """Compares what devices count from step to step; a count only grows within a window."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.window = 0  # its number
        self._counts: dict[int, tuple[int, list[float]]] = {}  # device -> window, counts of rows

    def ask(self, step: int) -> None:
        """A step has ended: asks each device which series were not finite in it."""
        session = self._session
        session.late.poll()
        used = len(session.catalogue.keys)
        for device, counts in enumerate(session.train.rows.non_finite()):
            told = functools.partial(
                self._tells, device, self.window, step, session.flight.call, session.skipped
            )
            session.late.put(counts[:used], told)

    def _tells(
        self, device: int, window: int, step: int, call: Any, skipped: bool | None,
        counts: list[float],
    ) -> None:  # fmt: skip
        """The counts of a step have come."""
        known, before = self._counts.get(device, (window, []))
        before = before if known == window else []
        self._counts[device] = (window, counts)
        odd = [
            row
            for row, count in enumerate(counts)
            if count > (before[row] if row < len(before) else 0)
        ]
        keys = [self._session.catalogue.keys[row][:2] for row in odd]
        self._session.flight.device_flags(step, call, keys, skipped)
