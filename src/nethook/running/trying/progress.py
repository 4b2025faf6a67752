"""Trying fixes at the end of a run, with a line on the terminal that says how far it is."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TextIO

from nethook.errors import RunFileError
from nethook.running.closing import written_files
from nethook.running.detecting.following import Session
from nethook.running.trying.try_fixes import Trials

_CLEAR: Final = "\r\x1b[K"
_WIDTH: Final = 78


def try_at_end(session: Session, trials: Trials, stream: TextIO | None) -> None:
    """Tries fixes for the findings of the first run; Ctrl-C ends that, and not the verdict.

    Arguments:
        session: what followed the script, which has ended.
        trials: what they need to know of it.
        stream: where it is said how far they are; None for nowhere.
    """
    paths = written_files(session)
    line = ProgressLine(stream)
    try:
        if paths:
            trials.try_fixes(paths[0], line.say)
    except RunFileError as error:
        session.notes.append(f"No fix was tried: {str(error).rstrip('.')}.")
    except KeyboardInterrupt:
        session.notes.append("Trying fixes was interrupted.")
    finally:
        line.end()


class ProgressLine:
    """In a terminal one line that is written over; elsewhere (a log) one line per trial."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._terminal = stream is not None and stream.isatty()
        self._said = ""

    def say(self, what: str) -> None:
        """Shows what is under way: `trial 1 of 2, the script as it is: step 57 of 200`."""
        line = f"nethook: {what}"[:_WIDTH]
        if self._terminal:
            self._write(f"{_CLEAR}{line}")
        elif ": step " not in what and line != self._said:
            self._said = line
            self._write(f"{line}\n")

    def end(self) -> None:
        """Nothing more; the line is wiped off a terminal."""
        if self._terminal:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
