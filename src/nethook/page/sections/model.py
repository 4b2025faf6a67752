"""The model as a tree: modules, what they return, their parameters, what was found in them."""

from __future__ import annotations

from typing import Final

from dash import html

from nethook.drawing.data import Row
from nethook.figures.reading import Reading
from nethook.figures.site_order import tree_rows
from nethook.page.folder import Opened
from nethook.page.html import Node, Part, Shown, anchor, badge, place, said
from nethook.page.urls import Place, run_link, site_link
from nethook.text.escape import shorten

_MOST: Final = 3000  # modules that are drawn
_OPEN: Final = 60  # up to so many modules all are open


def model(opened: Opened, reading: Reading, _: Place) -> Shown:
    """The view of the model."""
    body = [
        html.H1("Model"),
        html.P(
            "Modules in order of execution; the bar is the share of parameters.", className="sub"
        ),
        place("tree"),
    ]
    return Shown(
        "Model – nethook", body, {"tree": Part(opened.tag, lambda: _tree(opened, reading))}
    )


def _tree(opened: Opened, reading: Reading) -> Node:
    rows = tree_rows(reading.order)
    if not rows:
        return html.P("No modules are recorded yet.", className="note")
    more = f"{len(rows) - _MOST:,} more are not drawn." if len(rows) > _MOST else ""
    rows = rows[:_MOST]
    layers = set(reading.layers())
    total = max([1, *(row.parameters for row in rows)])
    told: dict[str, list[Node]] = {}
    for finding in reading.findings:
        for site in finding.sites[:100]:
            to = run_link(opened.entry.id, "findings", n=finding.anchor.rpartition("-")[2])
            mark = anchor(badge(finding.code, finding.severity), to)
            told.setdefault(site, []).append(mark)
    nodes = _level(rows, 0, len(rows), opened, layers, told, total, len(rows) <= _OPEN)
    return html.Div([*nodes, html.P(more, className="note")], className="card tree")


def _level(
    rows: list[Row],
    begin: int,
    end: int,
    opened: Opened,
    layers: set[str],
    told: dict[str, list[Node]],
    total: int,
    everything: bool,
) -> list[Node]:
    """The nodes of rows `begin` to `end`: each with those that are deeper right after it."""
    nodes: list[Node] = []
    index = begin
    while index < end:
        after = index + 1
        while after < end and rows[after].depth > rows[index].depth:
            after += 1
        line = _line(rows[index], opened, layers, told, total)
        if after == index + 1:
            nodes.append(html.Div(line, className="leaf line"))
        else:
            inside = _level(rows, index + 1, after, opened, layers, told, total, everything)
            nodes.append(
                html.Details(
                    [html.Summary(html.Div(line, className="line")), html.Div(inside)],
                    open=everything or rows[index].depth < 2,
                )
            )
        index = after
    return nodes


def _line(
    row: Row, opened: Opened, layers: set[str], told: dict[str, list[Node]], total: int
) -> list[Node]:
    short = shorten(row.address.rpartition(".")[2] or "(model)", 40)
    name = (
        anchor(short, site_link(opened.entry.id, row.address), className="address")
        if row.address in layers
        else html.Span(short, className="address")
    )
    wide = f"{max(1.0, 100 * row.parameters / total):.1f}%" if row.parameters else "0"
    bar = html.Span(html.Span(style={"width": wide}), className="share")
    count = f"{row.parameters:,}" if row.parameters else ""
    return [
        html.Span([name, *told.get(row.address, [])[:3]], className="name"),
        html.Span(said(row.kind, 40), className="soft"),
        html.Span(said(row.shape or row.note, 40), className="soft"),
        html.Span([count, bar], className="count", title=f"{count or 'no'} parameters"),
    ]
