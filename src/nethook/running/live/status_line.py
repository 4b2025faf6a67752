"""`--live`: how far the run is, while it trains.

In a terminal it is the last row, reserved, so that bars and prints go on above it; elsewhere (in a
log) a line now and then.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final, TextIO

from nethook.running.detecting.following import Session
from nethook.running.live.bottom_row import BottomRow
from nethook.text.terminal import screen_of, style_of

_EVERY: Final = 1.0  # seconds between two looks, in a terminal
_SELDOM: Final = 30.0  # and elsewhere


class StatusLine:
    """A thread that reads the run file and writes a status line, until it is stopped."""

    def __init__(self, session: Session, stream: TextIO, *, every: float | None = None) -> None:
        self._session = session
        self._stream = stream
        terminal = screen_of(stream) is not None and os.environ.get("TERM") != "dumb"
        self._row = BottomRow(stream, style_of(stream)) if terminal else None
        self._every = every or (_EVERY if terminal else _SELDOM)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nethook-live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more lines; a terminal gets its row back."""
        self._stop.set()
        self._thread.join(5.0)
        if self._row is not None:
            try:
                self._row.free()
            except (OSError, ValueError):
                return  # closed

    def _run(self) -> None:
        said = ""
        while not self._stop.wait(self._every):
            watcher = self._session.watcher
            width = None if self._row is None else self._row.columns
            line = "" if watcher is None else status_line(watcher.paths[-1], width)
            try:
                if line and self._row is not None:
                    self._row.show(line)
                elif line and line != said:
                    self._stream.write(f"{line}\n")
                    self._stream.flush()
            except (OSError, ValueError):
                return  # closed
            said = line


def status_line(path: Path, width: int | None = None) -> str:
    """Where a run is, in one line of at most `width`; "" while there is nothing to say."""
    from nethook.errors import RunFileError
    from nethook.running.verdict import course
    from nethook.runs.reading.run import open_run

    try:
        with open_run(path) as run:
            parts = course(run)
    except (RunFileError, OSError):
        return ""  # not yet there, or just being made
    # What does not fit is left out as a whole: half a number would be another number.
    while width is not None and len(parts) > 1 and len(_joined(parts)) > width:
        parts.pop()
    return _joined(parts)


def _joined(parts: list[str]) -> str:
    return "  ".join(parts)
