"""The last row of a terminal, reserved for one line of nethook's while others write above it.

    row = BottomRow(sys.stderr)
    row.show("step 12")
    row.free()

Bars of tqdm, rich or Lightning move the cursor and write over their own lines. So that neither
writes over the other, the terminal is told to scroll all but its last row (DECSTBM, which every
terminal in use knows), and the cursor is put back where it was after each write.
"""

from __future__ import annotations

import os
from typing import Final, TextIO

from nethook.text.paragraphs import Style

_SAVE: Final = "\x1b7"  # cursor and colours
_RESTORE: Final = "\x1b8"
_SCROLL_ALL: Final = "\x1b[r"
# Down one row and up again, in the same column: off the last row, should the cursor be there.
_OFF_LAST_ROW: Final = "\x1bD\x1b[A"
_FEWEST: Final = 6  # rows of a terminal that can spare one


class BottomRow:
    """One line at the bottom of a terminal, until `free`.

    Arguments:
        stream: writes to the terminal.
        style: with or without colours.
    """

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style
        self._reserved: tuple[int, int] | None = None  # columns and rows when it was

    @property
    def columns(self) -> int:
        """Characters that fit."""
        return self._size()[0] - 1  # in the last column some terminals break the line

    def show(self, text: str) -> None:
        """Shows a line instead of the one before."""
        columns, rows = self._size()
        if rows < _FEWEST:
            return
        change = "" if self._reserved == (columns, rows) else self._reserve(columns, rows)
        # Margins each time: a program may have reset the terminal.
        self._write(
            f"{change}{_SAVE}\x1b[1;{rows - 1}r\x1b[{rows};1H\x1b[0m\x1b[2K"
            f"{self._style('reverse', text[: columns - 1])}{_RESTORE}"
        )

    def free(self) -> None:
        """Wipes the row and gives it back."""
        if self._reserved is not None:
            self._write(self._given_back(self._reserved[1]))
            self._reserved = None

    def _reserve(self, columns: int, rows: int) -> str:
        before = "" if self._reserved is None else self._given_back(self._reserved[1])
        self._reserved = (columns, rows)
        return f"{before}{_OFF_LAST_ROW}"

    def _given_back(self, row: int) -> str:
        return f"{_SAVE}{_SCROLL_ALL}\x1b[{row};1H\x1b[0m\x1b[2K{_RESTORE}"

    def _size(self) -> tuple[int, int]:
        # What the terminal says itself: margins are set by it, whatever LINES says.
        try:
            columns, rows = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return 80, 0
        return columns or 80, rows

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
