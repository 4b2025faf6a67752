"""The fenced blocks of a page of the documentation, and what becomes of each in the tests.

| block | |
| --- | --- |
| `python` | is run; one page is one program |
| `<!-- python … -->` | is run as well: what a page needs and readers do not |
| `python title="train.py"` | is written to a file of that name |
| `text` after a `python` block | is what that prints; with a line `…`, not to the letter |
| `console` | commands behind `$`, which are run, and what they print |

`pytest tests/test_docs.py --overwrite` writes what commands print into the pages.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.running.both import Warm

_BLOCK: Final = re.compile(
    r'^(?:```|<!-- (?=python))(\w+)(?: title="([^"]+)")?\n(.*?)^(?:```|-->)$',
    re.MULTILINE | re.DOTALL,
)
_HOME: Final = "/home/me/project"
_PROGRAMS: Final = {"nethook": ("-m", "nethook"), "python": ()}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it is, its text and where in the page that is."""

    language: str
    title: str
    text: str
    start: int
    end: int


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    return [
        Block(found[1], found[2] or "", found[3], found.start(3), found.end(3))
        for found in _BLOCK.finditer(page)
    ]


def without_blocks(page: str) -> str:
    """A page without its fenced blocks."""
    return _BLOCK.sub("", page)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it shows as printed."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def printed_by(command: str, folder: Path, warm: Warm) -> str:
    """What a command prints where there is no terminal: standard output, then standard error."""
    name, *words = shlex.split(command)
    done = warm.run(*_PROGRAMS[name], *words, cwd=folder)
    return f"{done.out}{done.err}{done.closing}".replace(os.path.realpath(folder), _HOME)


def words_of(text: str) -> str:
    """A text without what differs between machines: numbers, times, and where lines break.

    A busy machine has less time for examinations, and an idle one a smaller cost.
    """
    text = re.sub(r"^(?:not )?examined\b.*\n(?: +.*\n)*", "", text, flags=re.MULTILINE)
    text = re.sub(r", watching cost.*\n(?: +.*\n)*", "\n", text)
    return re.sub(r"\d[\d.,:T-]*(?:e[+-]?\d+)?", "0", " ".join(text.split()))


def agree(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed: numbers aside, and `…` stands for any lines."""
    parts = [words_of(part) for part in re.split(r"^…$", shown, flags=re.MULTILINE)]
    return re.fullmatch(".*".join(map(re.escape, parts)), words_of(printed)) is not None
