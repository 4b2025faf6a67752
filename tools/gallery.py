"""Runs the code of docs/gallery.md and saves the figure of each block, in both themes.

    python -m tools.gallery

Needs kaleido (`nethook[export]`) and a Chromium.
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nethook
from tests.documents import blocks

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "pictures" / "gallery"
THEMES = ("light", "dark")
WIDTH = 860
OTHERS = frozenset({"QUANTITIES", "report", "save"})
"""What `nethook.figures` has besides figures."""
UNTHEMED = frozenset({"scales"})
"""Figures of other rooms, which have one theme."""
OF_RESULTS = ("overlay", "words", "features")
"""Figures that results of `nethook.interp` make of themselves."""


def figures() -> list[str]:
    """The name of every public figure."""
    return [name for name in nethook.figures.__all__ if name not in OTHERS]


def shown(page: str) -> Iterator[tuple[str, str]]:
    """The blocks of the page in order, each with the name of the picture below it, if any."""
    found = [block for block in blocks(page) if block.language == "python"]
    ends = [block.start for block in found[1:]] + [len(page)]
    for block, end in zip(found, ends, strict=True):
        name = re.search(r'src="pictures/gallery/(\w+)-light\.svg"', page[block.end : end])
        yield block.text, name[1] if name else ""


def draw(theme: str) -> Iterator[tuple[str, Any]]:
    """Every figure of the page, by name; functions that have a theme use this one."""
    names: dict[str, Any] = {}
    with ExitStack() as stack:
        for name in figures():
            drawn = functools.partial(getattr(nethook.figures, name), theme=theme)
            stack.enter_context(patch.object(nethook.figures, name, drawn))
        for result in (nethook.interp.Attribution, nethook.interp.Cam):
            themed = functools.partialmethod(result.figure, theme=theme)
            stack.enter_context(patch.object(result, "figure", themed))
        stack.enter_context(chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        for code, name in shown(PAGE.read_text(encoding="utf-8")):
            exec(compile(code, PAGE.name, "exec"), names)
            if name:
                yield name, names["figure"]


def main() -> None:
    """Writes docs/pictures/gallery."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for theme in THEMES:
        for name, figure in draw(theme):
            if name in UNTHEMED and theme != THEMES[0]:
                continue
            nethook.figures.save(figure, PICTURES / f"{name}-{theme}.svg", width=WIDTH)


if __name__ == "__main__":
    main()
