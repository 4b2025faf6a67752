"""Runs as the page opens them, and what a section shows of them."""

from __future__ import annotations

import html
import re
import shutil
from functools import cache
from typing import Any

from nethook.figures.reading import Reading
from nethook.page.folder import Folder, Opened
from nethook.page.live.links import LiveLinks
from nethook.page.markup import section_html
from nethook.page.report.links import ReportLinks
from nethook.page.section import Section, Subject
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


def reading(name: str = "training") -> Reading:
    """What is read of a run."""
    found = opened(name).reading
    assert found is not None
    return found


def subject(name: str = "training") -> Subject:
    """A run as the page shows it."""
    run = opened(name)
    return Subject(reading(name), LiveLinks(run.entry.id, reading(name)), name, run.tag, live=True)


def in_report(name: str = "training") -> Subject:
    """A run as a report shows it."""
    anchors = {address: f"layer-{at}" for at, address in enumerate(reading(name).layers())}
    return Subject(reading(name), ReportLinks(anchors), name)


def where(search: str = "") -> Place:
    """The address of a view with these options."""
    return read_place(f"/run/{opened().entry.id}", search)


def html_of(section: Section, *, live: bool = True, drawn: Any = None) -> str:
    """A section as HTML."""
    return section_html(section, live=live, drawn=drawn)


def text_of(section: Section, *, live: bool = True) -> str:
    """A section as the text that is read."""
    bare = re.sub(r"<[^>]*>", " ", html_of(section, live=live))
    return " ".join(html.unescape(bare).split())


def figures_of(section: Section) -> dict[str, Any]:
    """The figures of a section by name; None where there is nothing to draw."""
    return {name: drawing.make() for name, drawing in section.figures.items()}
