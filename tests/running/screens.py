"""A terminal that tests can look at: a pseudo-terminal, and what a person would see in it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from types import TracebackType
from typing import Self, TextIO

import pyte


class Terminal:
    """`stream` writes to it; `rows()` is what it shows, `above()` what has scrolled out of it."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._ours, theirs = pty.openpty()
        self._screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._feed = pyte.ByteStream(self._screen)
        self.stream: TextIO = open(theirs, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        os.set_blocking(self._ours, False)
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """As a person does who drags the corner of its window."""
        fcntl.ioctl(
            self.stream.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0)
        )
        self._screen.resize(rows, columns)

    def rows(self) -> list[str]:
        """Every row of the screen."""
        self._read()
        return [row.rstrip() for row in self._screen.display]

    def above(self) -> list[str]:
        """What one sees on scrolling up."""
        self._read()
        columns = range(self._screen.columns)
        return [
            "".join(line[column].data for column in columns).rstrip()
            for line in self._screen.history.top
        ]

    def text(self) -> list[str]:
        """All that is there, without the empty rows at the end."""
        shown = [*self.above(), *self.rows()]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def _read(self) -> None:
        if not self.stream.closed:
            self.stream.flush()
        while True:
            try:
                data = os.read(self._ours, 1 << 16)
            except OSError:  # nothing more at the moment
                return
            if not data:
                return
            self._feed.feed(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stream.close()
        os.close(self._ours)
