"""Paragraphs for a terminal or a log: wrapped, and with a colour where there are colours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

WIDTH: Final = 78
"""Columns of a paragraph in a log: it fits a terminal of 80."""
_CODES: Final = {
    "error": "31",
    "warning": "33",
    "info": "36",
    "good": "32",
    "bold": "1",
    "reverse": "7",
}


class Style(NamedTuple):
    """How text is shown: with or without colours, and in lines of how many columns.

    `terminal.style_of` has the one for a stream.
    """

    colour: bool = False
    width: int = WIDTH

    def __call__(self, kind: str, text: str) -> str:
        """`text`, coloured as `kind` is."""
        code = _CODES.get(kind)
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code else text


PLAIN: Final = Style()
"""As in a log."""


class _Wrapper(textwrap.TextWrapper):
    """Breaks a word only where no line holds it, and then from the beginning of a line."""

    def _handle_long_word(
        self, reversed_chunks: list[str], cur_line: list[str], cur_len: int, width: int
    ) -> None:
        if not cur_line:
            super()._handle_long_word(reversed_chunks, cur_line, cur_len, width)


def capitalized(text: str) -> str:
    """With a capital letter first; all else stays, names of classes among it."""
    return text[:1].upper() + text[1:]


def wrapped(
    text: str, style: Style | None = None, kind: str = "", *, indent: int = 0
) -> Iterator[str]:
    """A paragraph in lines; what stands before its colon may have a colour."""
    wrapper = _Wrapper(
        WIDTH if style is None else style.width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
    )
    lines = wrapper.wrap(text.replace("\n", " "))
    if style is not None and lines:
        start = lines[0].lstrip()
        head, colon, rest = start.partition(":")
        lines[0] = lines[0][: len(lines[0]) - len(start)] + style(kind, head) + colon + rest
    yield from lines
