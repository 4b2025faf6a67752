"""What views are made of: a skeleton with places in it, and the parts that stand in these places.

A skeleton stays while one looks at a view, so that nothing flickers; parts are sent when their tag
has changed. A part is made when it is sent, and one that cannot be made says so in its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dash import dcc, html

from nethook.drawing.data import Spec
from nethook.page.folder import Opened
from nethook.text.escape import line, shorten
from nethook.text.findings import Finding, when

Node = Any
"""A component of Dash, a text, or a list of these."""


@dataclass(frozen=True)
class Part:
    """Something that can change: `make` gives nodes, or with `figure` the spec of a figure."""

    tag: str
    make: Callable[[], Any] = field(repr=False)
    figure: bool = False


@dataclass(frozen=True)
class Shown:
    """A view: its title, the skeleton and the parts by name."""

    title: str
    body: Node = field(repr=False)
    parts: dict[str, Part] = field(repr=False)
    key: str = ""  # changes where the skeleton does, within one place
    of: Opened | None = field(default=None, repr=False)  # the run that is read
    step: int | None = None  # where figures have a line


def place(name: str, **options: Any) -> Node:
    """Where a part of nodes stands."""
    return html.Div(id={"part": name}, **options)


def fill(node: Node, parts: dict[str, dict[str, Any]]) -> None:
    """Put the nodes of parts into their places in a skeleton, and leave them out of the parts."""
    if isinstance(node, list | tuple):
        for child in node:
            fill(child, parts)
        return
    name = getattr(node, "id", None)
    part = parts.get(name.get("part", "")) if isinstance(name, dict) else None
    if part is not None and "nodes" in part:
        node.children = part.pop("nodes")
        setattr(node, "data-tag", part["tag"])
    elif not isinstance(node, str) and hasattr(node, "children"):
        fill(node.children, parts)


def figure(name: str, label: str, height: int = 300) -> Node:
    """Where a figure stands; it has this height until page.js draws it there."""
    return html.Div(
        role="group",
        className="figure waiting",
        id={"frame": name},
        style={"height": f"{height}px"},
        **attributes(aria_label=label, data_drawn="no"),
    )


def attributes(**named: object) -> Any:
    """Attributes of HTML that have a dash in their names: `data_param` is `data-param`."""
    return {name.replace("_", "-"): value for name, value in named.items()}


# Texts. Dash makes text nodes of strings, so nothing needs to be escaped for HTML; control
# characters are spelt out all the same.


def said(text: object, most: int = 2000) -> str:
    """Text of others, cut where it is too long."""
    return shorten(text, most)


def lines(text: str) -> Node:
    """A text of several lines."""
    nodes: list[Node] = []
    for index, row in enumerate(text.split("\n")):
        nodes += [html.Br(), line(row)] if index else [line(row)]
    return nodes


def anchor(text: Node, to: str, **options: Any) -> Node:
    """A link within the page."""
    return dcc.Link(text, href=to, **options)


def address(name: str, to: str = "", most: int = 60) -> Node:
    """The address of a site, as a link where it has a place."""
    text = shorten(name or "(model)", most)
    if not to:
        return html.Span(text, className="chip address")
    return anchor(text, to, className="chip address", title=said(name, 300))


def badge(text: object, kind: str) -> Node:
    """A coloured word."""
    return html.Span(shorten(text, 48), className=f"badge {kind}")


def severity_badge(finding: Finding) -> Node:
    """Severity and code of a finding."""
    return badge(f"{finding.severity} · {finding.code}", finding.severity)


def time_of(finding: Finding) -> Node:
    """Since when a finding is so."""
    return html.Span(when(finding), className="when")


EXPLAINED: Final = {
    "steps": "Steps of the optimizer that were recorded.",
    "loss": "The training loss, from its first to its last value.",
    "evaluation loss": "The loss in evaluation passes, from its first to its last value.",
    "parameters": "Numbers in all parameters of the model.",
    "layers": "Modules without modules in them, whose outputs are recorded.",
    "cost of watching": "Nethook's own time: per step, as a share of the training's, and in all.",
    "of which": "Putting the watch on, the first steps in detail, all later steps, and the end.",
    "measured": "The share of the steps that the numbers are from; 100 % is exact.",
    "budget": "What watching may cost, as a share of the training's time.",
    "series": "Quantities of sites that are recorded, each over all steps.",
    "mean": "Mean of all elements in these steps.",
    "spread": "Standard deviation of all elements in these steps.",
    "least": "The least finite element in these steps.",
    "greatest": "The greatest finite element in these steps.",
    "zeros": "The share of elements that are exactly zero.",
    "NaN, ∞": "The share of elements that are NaN or infinite.",
    "returns": "The shape of what the layer returned last.",
    "calls": "How often the layer was called, in each phase.",
    "threshold": "The number that what was found was held against.",
    "verdict": "What the doctor found while the run was written.",
    "difference": "The relative difference that is passed here for the first time.",
}
"""What a name in a table or a list means, in one sentence: shown when it is pointed at."""


def facts(rows: Sequence[tuple[str, Node]]) -> Node:
    """Names with their values."""
    return html.Dl(
        [
            html.Div([html.Dt(shorten(name, 40)), html.Dd(value)], title=EXPLAINED.get(name))
            for name, value in rows
        ],
        className="facts",
    )


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Node]], right: Sequence[int] = (), **more: Any
) -> Node:
    """A table; the columns with these numbers stand at the right."""
    side = dict.fromkeys(right, "right")
    head = [
        html.Th(name, className=side.get(index), scope="col", title=EXPLAINED.get(name))
        for index, name in enumerate(columns)
    ]
    body = [
        html.Tr([html.Td(cell, className=side.get(index)) for index, cell in enumerate(row)])
        for row in rows
    ]
    inside = html.Table([html.Thead(html.Tr(head)), html.Tbody(body)], **more)
    # A table that is wider than the screen scrolls by itself, by keyboard too.
    return html.Div(
        inside, className="scroll", tabIndex=0, role="region", **attributes(aria_label="table")
    )


def select(name: str, options: Sequence[tuple[str, str]], chosen: str, label: str) -> Node:
    """A choice that becomes a parameter of the address: (value, text).

    page.js makes the options: there can be hundreds, and a component of Dash is not cheap.
    """
    offered = json.dumps([(value, shorten(text, 60)) for value, text in options])
    return html.Label(
        [
            html.Span(label),
            html.Select(
                className="param",
                **attributes(data_param=name, data_value=chosen, data_options=offered),
            ),
        ],
        className="choice",
    )


def switch(name: str, text: str, *, on: bool, explain: str = "") -> Node:
    """A button that is pressed or not; a parameter of the address."""
    return html.Button(
        text,
        type="button",
        className="param",
        title=explain,
        **attributes(data_param=name, data_value="" if on else "1", aria_pressed=str(on).lower()),
    )


def slider(name: str, value: int, most: int, label: str) -> Node:
    """A step, chosen by sliding."""
    return html.Label(
        [
            html.Span([label, " ", html.Output(f"{value:,}", className="number")]),
            dcc.Input(
                type="range", min=0, max=max(1, most), step=1, value=value, persistence=False
            ),
        ],
        className="choice slider param",
        **attributes(data_param=name, data_value=str(value)),
    )


def card(*children: Node, **options: Any) -> Node:
    """A box."""
    options.setdefault("className", "card")
    return html.Div(list(children), **options)


def heading(text: str, explain: str = "", level: int = 2) -> Node:
    """A title, with one sentence that explains what is below."""
    kind = {2: html.H2, 3: html.H3}[level]
    return [kind(text), html.P(explain, className="explain")] if explain else [kind(text)]


def note(text: Node) -> Node:
    """Something to know."""
    return html.P(text, className="note")


def empty_figure(text: str) -> Spec:
    """A figure that says why there is none."""
    from nethook.text.escape import plotly_text

    said_here = {
        "text": plotly_text(shorten(text, 140)), "xref": "paper", "yref": "paper", "x": 0.5,
        "y": 0.5, "showarrow": False, "font": {"size": 13},
    }  # fmt: skip
    hidden = {"visible": False, "fixedrange": True}
    layout = {
        "annotations": [said_here], "xaxis": hidden, "yaxis": hidden, "height": 120,
        "margin": {"t": 10, "b": 10, "l": 10, "r": 10},
    }  # fmt: skip
    return {"data": [], "layout": layout}
