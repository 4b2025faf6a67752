"""Sections as one HTML file that needs nothing but a browser.

Every text is escaped where it is put in. A content security policy names the two scripts of the
page by their hashes and forbids all requests, so that even a text that escaped escaping could
neither run nor reach anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from markupsafe import Markup

from nethook.drawing.rendering.render import payload
from nethook.page.markup import asset, looks, render, section_html
from nethook.page.section import Section
from nethook.text.escape import script_json

_SCRIPTS: Final = ("draw.js", "figures.js", "report.js")


@dataclass(frozen=True)
class Made:
    """A section as HTML, with its figures as JSON by name."""

    html: str
    figures: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes that it takes in a file."""
        data = sum(len(name) + len(text) + 70 for name, text in self.figures.items())
        return len(self.html.encode("utf-8", "backslashreplace")) + data


@dataclass(frozen=True)
class Chapter:
    """Sections under one anchor, which the bar leads to; `title` is "" for those it does not."""

    anchor: str
    title: str
    sections: Sequence[Made]
    heading: str = ""  # of the chapter itself
    note: str = ""
    filtered: bool = False  # whether what is in it can be found by name


def made(section: Section, *, heading: str = "h2") -> Made:
    """A section, made once."""
    figures = {}
    for name, drawing in section.figures.items():
        spec = drawing.make()
        if spec is not None:
            figures[name] = script_json(payload(spec))
    return Made(section_html(section, heading=heading, drawn=figures.keys()), figures)


def page(title: str, chapters: Sequence[Chapter], plotly_js: str) -> str:
    """The HTML of a file. `plotly_js` is put in as it is, once."""
    script = "\n".join(asset(name) for name in _SCRIPTS)
    policy = (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; font-src data:; "
        f"script-src '{_hash(plotly_js)}' '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    figures = {
        name: Markup(data)
        for chapter in chapters
        for section in chapter.sections
        for name, data in section.figures.items()
    }
    data: dict[str, Any] = {
        "title": title,
        "policy": policy,
        "chapters": chapters,
        "figures": figures,
        "style": Markup(asset("looks.css")),
        "looks": Markup(looks()),
        "plotly_js": Markup(plotly_js),
        "script": Markup(script),
    }  # fmt: skip
    return render("report.html", data)


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
