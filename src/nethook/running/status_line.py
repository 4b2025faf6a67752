"""`--live`: how far the run is, while it trains.

Two writers on one terminal mix, so this is only there when it is asked for. In a terminal it is one
line that is written over; elsewhere (a log) a line now and then.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final, TextIO

from nethook.running.following import Session

_EVERY: Final = 1.0  # seconds between two looks, in a terminal
_SELDOM: Final = 30.0  # and elsewhere
_CLEAR: Final = "\r\x1b[K"


class StatusLine:
    """A thread that reads the run file and writes a status line, until it is stopped."""

    def __init__(self, session: Session, stream: TextIO, *, every: float | None = None) -> None:
        self._session = session
        self._stream = stream
        self._terminal = stream.isatty()
        self._every = every or (_EVERY if self._terminal else _SELDOM)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nethook-live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more lines; the last one is wiped off a terminal."""
        self._stop.set()
        self._thread.join(5.0)
        if self._terminal:
            self._write(_CLEAR)

    def _run(self) -> None:
        said = ""
        while not self._stop.wait(self._every):
            watcher = self._session.watcher
            line = "" if watcher is None else status_line(watcher.paths[-1])
            if line and line != said:
                said = line
                self._write(f"{_CLEAR}{line}" if self._terminal else f"{line}\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stop.set()


def status_line(path: Path) -> str:
    """Where a run is, in one line; "" while there is nothing to say."""
    from nethook.errors import RunFileError
    from nethook.running.verdict import course
    from nethook.runs.reading.run import open_run
    from nethook.text.paragraphs import WIDTH

    try:
        with open_run(path) as run:
            return course(run)[:WIDTH]
    except (RunFileError, OSError):
        return ""  # not yet there, or just being made
