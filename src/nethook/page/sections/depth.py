"""One number of every layer at a step, from the first layer to the last; a second run beside."""

from __future__ import annotations

from dash import html

from nethook.drawing.data import Spec
from nethook.drawing.quantities import QUANTITIES
from nethook.figures.evidence import depth_spec
from nethook.figures.reading import Reading
from nethook.figures.runs import beside_spec
from nethook.page.folder import Folder, Opened
from nethook.page.html import Node, Part, Shown, empty_figure, figure, place, select, slider
from nethook.page.sections.overview import layer_link, offered_quantities
from nethook.page.urls import Place


def depth(folder: Folder, opened: Opened, reading: Reading, where: Place) -> Shown:
    """The view of profiles."""
    offered = offered_quantities(reading)
    usual = "output_gradients" if "output_gradients" in offered else (offered or ["spread"])[0]
    chosen = where.quantity(usual)
    last = max(0, reading.last_step)
    asked = where.number("step")
    step = last if asked is None else min(asked, last)
    entry = folder.entry(where.text("with")) if where.text("with") else None
    other = folder.open(entry) if entry is not None and entry.id != opened.entry.id else None
    tag = repr((opened.tag, other and other.tag, chosen, step))
    body = [
        html.H1("Depth profile"),
        place("explain"),
        html.Div(
            [place("choose", className="tools"), figure("profile", "Every layer at one step", 400)],
            className="card",
        ),
    ]

    def choose() -> Node:
        others = [
            (entry.id, entry.name) for entry in folder.entries() if entry.id != opened.entry.id
        ]
        runs = [("", "no other run"), *others[:200]]
        beside = other.entry.id if other else ""
        return [
            select("q", [(name, QUANTITIES[name].title) for name in offered], chosen, "Quantity"),
            select("with", runs, beside, "Beside it"),
            slider("step", step, last, "Step"),
        ]

    parts = {
        "explain": Part(chosen, lambda: html.P(QUANTITIES[chosen].explain, className="explain")),
        "choose": Part(tag, choose),
        "profile": Part(tag, lambda: _profile(opened, reading, other, chosen, step), figure=True),
    }
    return Shown("Depth – nethook", body, parts)


def _profile(
    opened: Opened, reading: Reading, other: Opened | None, chosen: str, step: int
) -> Spec:
    grid = reading.grid(chosen)
    if grid is None:
        return empty_figure("The run has no such numbers yet.")
    spec = None
    if other is not None and other.reading is not None and other.reading.grid(chosen) is not None:
        spec = beside_spec(reading, other.reading, chosen, step)
    if spec is None:
        spec = depth_spec(reading, chosen, sorted({0, step}))
    if spec is None:
        return empty_figure("The run has no such numbers yet.")
    spec["layout"].pop("title", None)
    spec["layout"]["margin"] = {"t": 34}
    links = [{"to": layer_link(opened, reading, row, step=step)} for row in grid.rows]
    spec["layout"]["meta"] = {"links": links}
    return spec
