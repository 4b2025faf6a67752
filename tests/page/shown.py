"""Runs as the page opens them, and what a view shows of them."""

from __future__ import annotations

import json
import shutil
from functools import cache
from typing import Any

from dash._utils import to_json

from nethook.figures.reading import Reading
from nethook.page.folder import Folder, Opened
from nethook.page.html import Shown
from nethook.page.urls import Place, read_place
from tests.figures import shared


@cache
def folder() -> Folder:
    """A folder with two runs, the second like the first until step 61, and a broken file."""
    place = shared.folder() / "page"
    place.mkdir()
    for made in (shared.training, shared.changed):
        shutil.copy(made(), place / f"{made.__name__}.db")
    (place / "broken.db").write_bytes(b"x" * 4096)
    return Folder(place)


def opened(name: str = "training") -> Opened:
    """The run of this name."""
    (entry,) = (entry for entry in folder().entries() if entry.name == name)
    return folder().open(entry)


def reading() -> Reading:
    """What is read of the first run."""
    found = opened().reading
    assert found is not None
    return found


def where(search: str = "") -> Place:
    """The address of a view with these options."""
    return read_place(f"/run/{opened().entry.id}", search)


def text_of(shown: Shown | Any) -> str:
    """A view, or nodes, as the text that is sent; with all of its parts made."""
    if not isinstance(shown, Shown):
        # Dash writes some characters as escapes.
        return json.dumps(json.loads(to_json(shown)), ensure_ascii=False)
    parts = {name: part.make() for name, part in shown.parts.items() if not part.figure}
    return text_of([shown.title, shown.body, parts])


def figures_of(shown: Shown) -> dict[str, Any]:
    """The figures of a view by name; None where there is nothing to draw."""
    return {name: part.make() for name, part in shown.parts.items() if part.figure}
