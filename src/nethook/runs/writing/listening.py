"""Who listens to what is written: told by the writer's thread, never by the training's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from nethook.runs.writing.queue import Delivery, WindowQueue
from nethook.runs.writing.store import Event

Say = Callable[[str, int, str], None]
"""Keeps an event in the run: its kind, its step, its message."""


class Listener(Protocol):
    """Hears what the writer's thread takes out, before it is written."""

    def opened(self, path: Path, series: Mapping[tuple[str, str], int], say: Say) -> None:
        """The run is open: its file, the rows of its series so far, and how to keep events."""

    def heard(self, delivery: Delivery) -> None:
        """A window that was closed, new series, scalars, findings. The window is cleared after."""


def say_into(queue: WindowQueue) -> Say:
    """Keeps events by way of a queue; it holds the queue alone, as the writer's thread does."""

    def say(kind: str, step: int, message: str) -> None:
        queue.put_note("event", Event(step, time.time(), kind, "", message, {}))

    return say
