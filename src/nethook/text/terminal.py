"""What the stream at hand can show: colours, columns and rows.

    style = style_of(sys.stderr)
    for line in wrapped("a long text", style): print(line)

Only a terminal has colours and a size. Anything else is a log: no colours, lines of the usual
width, and as many of them as there are.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple, TextIO

from nethook.text.paragraphs import Style

_NARROWEST: Final = 40  # columns below which breaking lines helps nobody
_WIDEST: Final = 98  # longer lines are hard to read, however wide the terminal


class Screen(NamedTuple):
    """The size of a terminal."""

    columns: int
    rows: int


def screen_of(stream: TextIO | None) -> Screen | None:
    """The size of the terminal behind a stream; None where there is no terminal.

    `COLUMNS` and `LINES` override what the terminal says, as they do for other programs.
    """
    try:
        if stream is None or not stream.isatty():
            return None
    except ValueError:  # it is closed
        return None
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0  # a terminal that does not know its size
    return Screen(_positive("COLUMNS") or columns or 80, _positive("LINES") or rows or 24)


def style_of(stream: TextIO | None) -> Style:
    """How text is shown on a stream.

    Colours need a terminal that is not `dumb`; `NO_COLOR` turns them off (https://no-color.org),
    and `FORCE_COLOR` turns them on in a log.
    """
    screen = screen_of(stream)
    capable = screen is not None and os.environ.get("TERM") != "dumb"
    colour = not os.environ.get("NO_COLOR") and (capable or bool(os.environ.get("FORCE_COLOR")))
    if screen is None:
        return Style(colour)
    return Style(colour, min(max(screen.columns - 2, _NARROWEST), _WIDEST))


def _positive(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else 0
