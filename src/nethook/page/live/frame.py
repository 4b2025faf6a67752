"""What stands around every view: the bar with the ways to go, and how the run is doing."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

from dash import html

from nethook.page.folder import Opened
from nethook.page.html import Node, Part, anchor, attributes, badge, place, said
from nethook.page.urls import VIEWS, Place, run_link
from nethook.text.escape import shorten
from nethook.text.numbers import seconds

STATES: Final = {
    "open": ("live", "good", "It is being written; this page follows."),
    "finished": ("finished", "quiet", "The run was closed as it should be."),
    "died": (
        "cut off",
        "warning",
        "The writer has gone: its process ended without closing the run.",
    ),
    "missing": ("missing", "warning", "The file of its first rank is missing."),
    "broken": (
        "cannot be read",
        "error",
        "The file is damaged, foreign or newer than this nethook.",
    ),
}
"""State of a run -> the word for it, its colour, and one sentence."""
_KEYS: Final = (
    ("1 … 6", "views of this run"),
    ("[ and ]", "the layer before, the layer after"),
    ("← and →", "a step back, a step on (with Shift: ten)"),
    ("r", "all runs"),
    ("t", "light or dark"),
    ("?", "these keys"),
)


def bar(where: Place, title: str) -> Node:
    """The bar at the top."""
    links: list[Node] = []
    if where.kind == "run":
        for key, view in enumerate(VIEWS, start=1):
            here = attributes(aria_current="page") if view == where.view else {}
            kind = "here" if view == where.view else None
            text = html.Span(VIEWS[view], **here)
            links.append(anchor(text, run_link(where.run, view), className=kind, id=f"go-{key}"))
    brand = anchor("nethook", "/", className="brand", title="All runs")
    name = [html.Span("/", className="slash"), html.Span(shorten(title, 48), className="run-name")]
    return html.Header(
        [
            html.Div([brand, *(name if title else [])], className="where"),
            html.Nav(links, **attributes(aria_label="Views of this run")) if links else html.Span(),
            html.Div(
                [
                    place("state"),
                    html.Button(
                        "?", id="keys", type="button", title="Keys", **attributes(aria_label="Keys")
                    ),
                    html.Button(
                        "◐", id="theme-button", type="button",
                        **attributes(aria_label="Switch between light and dark"),
                    ),
                ],
                className="right-side",
            ),
        ],
        className="bar",
    )  # fmt: skip


def around(where: Place, title: str, *inside: Node) -> Node:
    """A view with its bar."""
    keys = html.Dl([html.Div([html.Dt(key), html.Dd(does)]) for key, does in _KEYS])
    help_box = html.Div(
        [html.H2("Keys"), keys, html.Button("close", type="button", id="keys-close")],
        id="keys-box",
        role="dialog",
        hidden=True,
        **attributes(aria_label="Keys"),
    )
    gone = html.Div(
        "nethook ui does not answer: it has ended, or is busy. What is shown is the last it sent.",
        id="gone",
        role="alert",
        hidden=True,
    )
    main = html.Main(list(inside), id="main", tabIndex=-1)
    return [bar(where, title), gone, help_box, main]


def state_part(opened: Opened) -> Part:
    """The word for how the run is."""
    step = -1 if opened.reading is None else opened.reading.last_step

    def make() -> Node:
        word, kind, explain = STATES[opened.state]
        shown = f"{word} · step {step:,}" if step >= 0 else word
        return html.Span(badge(shown, kind), title=explain, className=f"state {opened.state}")

    return Part(f"{opened.state}-{step}", make)


def age(moment: float) -> str:
    """How long ago something was, as a person would say it."""
    passed = max(0.0, time.time() - moment)
    if passed < 60:
        return "just now"
    if passed < 3 * 86400:
        return f"{_rough(passed)} ago"
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def _rough(passed: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if passed >= size:
            return f"{int(passed // size)} {unit}"
    return seconds(passed)


def problem_card(opened: Opened) -> Node:
    """A run that cannot be read."""
    return html.Div(
        [
            html.Div("This run cannot be read", className="word"),
            html.P(said(opened.problem, 600)),
            html.P(
                "Nothing of it was run or unpacked, and the other runs are not touched by it.",
                className="note",
            ),
        ],
        className="card verdict error",
    )
