"""What a browser is sent of a view: the frame where it is another one, and what has changed.

A browser says where it is and what it has, by tags; the answer has the sections and figures whose
tags differ. Something that cannot be made says so in its place. While plotly.js is not loaded yet,
figures come with a still picture, so that there is something to look at meanwhile.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from markupsafe import Markup

from nethook.drawing.palette import THEMES
from nethook.drawing.rendering.render import payload, picture
from nethook.page.live.routes import Shown, Views
from nethook.page.markup import empty_figure, escaped, render, section_html
from nethook.page.section import Drawing, Section
from nethook.page.urls import VIEWS, Place, run_link


def answer_of(views: Views, place: Place, have: object = None) -> dict[str, Any]:
    """What a browser at a place is sent.

    Arguments:
        views: what can be shown.
        place: where the browser is.
        have: what it has, as it says: `{"key": …, "tags": {name: tag}}`; with `"still"` while it
            cannot draw yet, and is sent pictures to show until then.
    """
    shown = views.show(place)
    kept = have if isinstance(have, Mapping) else {}
    key = key_of(place, shown)
    same = kept.get("key") == key
    tags = kept.get("tags") if same else {}
    tags = tags if isinstance(tags, Mapping) else {}
    stills = _stills(kept.get("still"))
    begin = time.monotonic()
    with shown.of.lock if shown.of is not None else nullcontext():
        sections = {
            f"section-{section.name}": {"tag": _short(section.tag), "html": _html(section, shown)}
            for section in shown.sections
            if tags.get(f"section-{section.name}") != _short(section.tag)
        }
        figures = {
            name: {"tag": _short(drawing.tag), **_figure(drawing, stills)}
            for section in shown.sections
            for name, drawing in section.figures.items()
            if tags.get(f"figure-{name}") != _short(drawing.tag)
        }
    if shown.of is not None:
        shown.of.seconds = max(shown.of.seconds, time.monotonic() - begin)
    sent = {
        "key": key, "title": shown.title, "new": not same, "step": shown.step,
        "state": digest_of(place, shown), "sections": sections, "figures": figures,
    }  # fmt: skip
    if not same:  # sections stand in the frame
        sent["frame"] = _frame(views.settled(place), shown, sections)
        sent["sections"] = {name: {"tag": section["tag"]} for name, section in sections.items()}
    return sent


def key_of(place: Place, shown: Shown) -> str:
    """Tells frames apart: within one, only sections and figures change."""
    return f"{place.skeleton} {shown.key}"


def digest_of(place: Place, shown: Shown) -> str:
    """Tells what is shown at a moment from what was before."""
    tags = [(section.name, section.tag) for section in shown.sections]
    drawn = [(n, d.tag) for section in shown.sections for n, d in section.figures.items()]
    return _short(repr((key_of(place, shown), tags, drawn)))


def _short(tag: str) -> str:
    return hashlib.sha256(tag.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def _frame(place: Place, shown: Shown, sections: Mapping[str, Mapping[str, Any]]) -> str:
    views = []
    if place.kind == "run":
        views = [
            (run_link(place.run, view), text, view == place.view)
            for view, text in VIEWS.items()
            if view != "studies" or shown.has_studies
        ]
    made = [
        (section.name, Markup(sections[f"section-{section.name}"]["html"]))
        for section in shown.sections
    ]
    return render("view.html", {"name": shown.name, "views": views, "sections": made})


def _html(section: Section, shown: Shown) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numbers of a stranger may overflow
            first = section is shown.sections[min(1, len(shown.sections) - 1)]
            return section_html(section, heading=shown.heading if first else "h2", live=True)
    except Exception as error:
        why = f"This cannot be shown: {type(error).__name__}: {error}"
        return f'<p class="note">{escaped(why[:500])}</p>'


class _Stills(NamedTuple):
    """How pictures are to be: in which theme, and how many pixels wide."""

    theme: str
    width: int


def _stills(asked: object) -> _Stills | None:
    """How a browser asks for pictures: `{"theme": "dark", "width": 1130}`."""
    if not isinstance(asked, Mapping):
        return None
    theme, width = asked.get("theme"), asked.get("width")
    if not isinstance(theme, str) or theme not in THEMES:
        return None
    if isinstance(width, bool) or not isinstance(width, int) or not 200 <= width <= 4000:
        return None
    return _Stills(theme, width)


def _figure(drawing: Drawing, stills: _Stills | None) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            spec = drawing.make()
    except Exception as error:
        spec = empty_figure(f"This cannot be shown: {type(error).__name__}: {error}")
    if spec is None:
        return {"figure": None}
    made: dict[str, Any] = {"figure": payload(spec)}
    if stills is not None:
        with suppress(Exception), warnings.catch_warnings():  # the browser draws it soon anyway
            warnings.simplefilter("ignore", RuntimeWarning)
            made["still"] = picture(spec, *stills)
    return made
