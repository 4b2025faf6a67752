"""Runs the code of docs/gallery.md and saves the figure of each block, in both themes.

    python -m tools.gallery
    python -m tools.gallery lens probes     # the pictures of these alone

Needs kaleido (`nethook[export]`) and a Chromium.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import pkgutil
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nethook
from nethook.interp.results.result import Result
from tests.documents import blocks

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "pictures" / "gallery"
THEMES = ("light", "dark")
WIDTH = 860
OTHERS = frozenset({"QUANTITIES", "report", "save", "show"})
"""What `nethook.figures` has besides figures."""
OF_RESULTS = {
    "overlay": "Attribution", "words": "Attribution", "features": "Attribution", "cam": "Cam",
    "effects": "Sweep", "agreement": "Verified", "lens": "Lens",
    "projections": "Direction", "steering": "SteeringCurve", "probes": "Probes",
    "subspace": "Subspace", "dictionary": "SplicedSite", "likeness": "CKA",
    "recovered": "Recovered", "translators": "TunedLens",
    "field": "ReceptiveField", "pattern": "Visualisation",
    "scales": "Report", "widths": "Sweep",
}  # fmt: skip
"""Figures that results of `nethook.interp` and `nethook.init` make of themselves, and the class."""


def figures() -> list[str]:
    """The name of every public figure."""
    return [name for name in nethook.figures.__all__ if name not in OTHERS]


def drawing_results() -> list[Any]:
    """Every class of results that draws itself: with a `figure`, or a `spec`, of its own."""
    found = {}
    for room in (nethook.interp, nethook.init):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            for each in vars(importlib.import_module(module.name)).values():
                own = inspect.isclass(each) and each.__module__ == module.name
                if own and each is not Result and not {"figure", "spec"}.isdisjoint(vars(each)):
                    found[each.__qualname__, each.__module__] = each
    return [found[key] for key in sorted(found)]


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
        for result in drawing_results():
            themed = functools.partialmethod(result.figure, theme=theme)
            stack.enter_context(patch.object(result, "figure", themed))
        stack.enter_context(chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        for code, name in shown(PAGE.read_text(encoding="utf-8")):
            exec(compile(code, PAGE.name, "exec"), names)
            if name:
                yield name, names["figure"]


def main(chosen: list[str]) -> None:
    """Writes docs/pictures/gallery, or some of it."""
    import kaleido

    PICTURES.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.filterwarnings("ignore", "The kopts argument is ignored", UserWarning)
    kaleido.start_sync_server()  # one browser for all pictures
    try:
        for theme in THEMES:
            for name, figure in draw(theme):
                if not chosen or name in chosen:
                    nethook.figures.save(figure, PICTURES / f"{name}-{theme}.svg", width=WIDTH)
    finally:
        kaleido.stop_sync_server()


if __name__ == "__main__":
    main(sys.argv[1:])
