"""The list of runs."""

from __future__ import annotations

import time
from typing import Final

from dash import html

from nethook.page.folder import Entry, Folder
from nethook.page.html import Node, Part, Shown, anchor, attributes, badge, place, said, table
from nethook.page.live.frame import STATES, age, around
from nethook.page.summaries import Summaries, Summary
from nethook.page.urls import MOST_COMPARED, Place, link, run_link
from nethook.text.escape import shorten

_PATIENCE: Final = 0.8  # seconds of one answer that go into reading runs; the rest comes later
_AT_ONCE: Final = 200  # runs on one page


def listing(folder: Folder, summaries: Summaries, where: Place) -> Shown:
    """All runs of the folder: what each is called, how it is, and the course of its loss."""
    entries = folder.entries()
    wanted = where.text("find").casefold()
    matches = [entry for entry in entries if wanted in entry.name.casefold()]
    first = min(where.number("from") or 0, max(0, len(matches) - 1))
    shown = matches[first : first + _AT_ONCE]
    picked = [run for run in where.text("pick").split("~") if run][:MOST_COMPARED]
    begin, rows = time.monotonic(), []
    for entry in shown:
        summary = summaries.known(entry)
        if summary is None and time.monotonic() - begin < _PATIENCE:
            summary = summaries.make(entry)
        rows.append((entry, summary))
    body = around(where, "", html.H1("Runs"), place("head"), place("rows"))
    more = (len(matches), first)
    told = [(e.id, s and (s.stamp, s.state, age(s.changed))) for e, s in rows]
    return Shown(
        "Runs – nethook",
        body,
        {
            "state": Part("list", lambda: None),
            "head": Part(
                repr((len(entries), picked, where.text("find"))),
                lambda: _head(folder, entries, picked, where),
            ),
            "rows": Part(repr((told, picked, more)), lambda: _rows(rows, picked, where, *more)),
        },
    )


def _head(folder: Folder, entries: list[Entry], picked: list[str], where: Place) -> Node:
    from dash import dcc

    if not entries:
        return None
    count = f"{len(entries):,} run{'s' if len(entries) != 1 else ''} in {folder.title}"
    search = html.Div(
        dcc.Input(
            type="search",
            placeholder="Find by name",
            value=where.text("find"),
            debounce=False,
            persistence=False,
            id="find",
        ),
        className="param typed",
        **attributes(data_param="find"),
    )
    compare: Node = html.Span("Choose two or more to compare them.", className="note")
    if len(picked) > 1:
        runs = "~".join(picked)
        compare = anchor(
            f"Compare {len(picked)} runs", link("/compare", runs=runs), className="button strong"
        )
    elif picked:
        compare = html.Span("One more to compare with.", className="note")
    return html.Div([html.Span(count, className="sub"), search, compare], className="tools")


def _rows(
    rows: list[tuple[Entry, Summary | None]],
    picked: list[str],
    where: Place,
    all_of: int,
    start: int,
) -> Node:
    if not rows:
        return html.Div(
            [
                html.Div("No runs yet", className="word"),
                html.P(
                    [
                        "A run appears here as soon as its first step is written. Start one with ",
                        html.Code("nethook run train.py"),
                        " or ",
                        html.Code("nethook.watch(model, optimizer)"),
                        ".",
                    ]
                ),
            ],
            className="card verdict",
        )
    columns = ("run", "state", "changed", "steps", "verdict", "loss", "", "compare")
    made = table(columns, [_row(entry, summary, picked) for entry, summary in rows], right=(3,))
    return [html.Div(made, className="card runs"), _pages(all_of, start, where)]


def _row(entry: Entry, summary: Summary | None, picked: list[str]) -> list[Node]:
    name = anchor(
        shorten(entry.name, 70), run_link(entry.id), className="address", title=said(entry.name)
    )
    if summary is None:
        return [name, html.Span("reading …", className="note"), "", "", "", "", "", ""]
    word, kind, explain = STATES[summary.state]
    state = html.Span(badge(word, kind), title=said(summary.problem, 300) or explain)
    if summary.state == "broken":
        return [
            name,
            state,
            "",
            "",
            html.Span(said(summary.problem, 70), className="note"),
            "",
            "",
            "",
        ]
    spark = (
        html.Img(src=summary.spark, alt=f"course of the loss: {summary.loss}", className="spark")
        if summary.spark
        else ""
    )
    others = [run for run in picked if run != entry.id]
    on = entry.id in picked
    new = "~".join(others if on else [*picked, entry.id][-MOST_COMPARED:])
    pick = html.Button(
        "✓ chosen" if on else "+ choose",
        type="button",
        className="param small",
        **attributes(
            data_param="pick", data_value=new, aria_pressed=str(on).lower(),
            aria_label=f"Choose {shorten(entry.name, 60)} for comparing",
        ),
    )  # fmt: skip
    verdict = badge(summary.verdict, summary.severity)
    return [
        name,
        state,
        age(summary.changed),
        f"{summary.steps:,}",
        verdict,
        summary.loss,
        spark,
        pick,
    ]


def _pages(all_of: int, start: int, where: Place) -> Node:
    if all_of <= _AT_ONCE:
        return None
    kept = {name: value for name, value in where.query.items() if name != "from"}
    ways: list[Node] = [f"{start + 1:,} to {min(all_of, start + _AT_ONCE):,} of {all_of:,}"]
    if start:
        ways.append(anchor("newer", link("/", **kept, **{"from": max(0, start - _AT_ONCE)})))
    if start + _AT_ONCE < all_of:
        ways.append(anchor("older", link("/", **kept, **{"from": start + _AT_ONCE})))
    return html.Div([html.Span(way) for way in ways], className="tools note")
