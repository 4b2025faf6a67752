"""One layer: its numbers at a step, how its values were spread, its units, gradients, updates."""

from __future__ import annotations

from typing import Final

import numpy as np
from dash import html

from nethook.drawing.curves import curves
from nethook.drawing.data import Spec
from nethook.drawing.palette import GREY
from nethook.figures import tensor_specs
from nethook.figures.reading import Reading
from nethook.figures.runs import WORDS, bands_spec, histogram_spec, units_spec
from nethook.figures.site_order import shape_text
from nethook.page.folder import Opened
from nethook.page.html import (
    Node,
    Part,
    Shown,
    address,
    anchor,
    attributes,
    badge,
    facts,
    figure,
    place,
    said,
    select,
    slider,
    table,
)
from nethook.page.sections.layer_details import latest_numbers, layer_facts, layer_panels
from nethook.page.urls import PHASES, Place, run_link, site_link
from nethook.runs import names
from nethook.runs.reading.results import Series
from nethook.text.escape import shorten
from nethook.text.numbers import number, share

_MOST_ROWS: Final = 500  # layers in the list
_SHOWN: Final = (names.OUTPUTS, names.GRADS, names.PARAMS, names.PARAM_GRADS, names.UPDATES)
_COLUMNS: Final = ("mean", "std", "min", "max", "zero_share", "nonfinite_share")
_HEADS: Final = (
    "of",
    "mean",
    "spread",
    "least",
    "greatest",
    "zeros",
    "NaN, ∞",
    "steps",
    "measured",
)


def layers(opened: Opened, reading: Reading) -> Shown:
    """The layers to choose from, with their latest numbers."""

    def rows() -> Node:
        cells = []
        for name in reading.layers()[:_MOST_ROWS]:
            told = [
                badge(finding.code, finding.severity)
                for finding in reading.findings
                if name in finding.sites
            ]
            cells.append(
                [
                    address(name, site_link(opened.entry.id, name)),
                    said(reading.order.kind(name), 40),
                    shape_text(reading.order.info(name).get("shape")),
                    latest_numbers(reading, name),
                    html.Span(told[:3], className="chips"),
                ]
            )
        if not cells:
            return html.P("No layer has recorded outputs yet.", className="note")
        heads = ("layer", "type", "returns", "at the latest step", "findings")
        return html.Div(table(heads, cells), className="card")

    body = [html.H1("Layers"), html.P("In order of execution.", className="sub"), place("rows")]
    return Shown("Layers – nethook", body, {"rows": Part(opened.tag, rows)}, "list")


def layer(opened: Opened, reading: Reading, where: Place) -> Shown:
    """One layer at one step."""
    name = where.site()
    all_layers = reading.layers()
    if name is None or not (reading.has(name, names.OUTPUTS) or name in reading.order.sites):
        return layers(opened, reading)
    last = max(0, reading.last_step)
    asked = where.number("step")
    step = last if asked is None else min(asked, last)
    phase = where.phase()
    of, quantity = chosen_series(reading, name, where.text("of"))
    base = repr((opened.tag, name))
    at_step = repr((base, step, asked))
    spread = repr((base, of, quantity, phase))
    body = [
        html.Div([place("title"), place("ways", className="tools tight")], className="row"),
        place("facts"),
        html.Div(place("step"), className="card sticky"),
        html.Div(figure("courses", "Spread, gradients, updates over steps", 300), className="card"),
        html.Div(
            [
                html.Div([html.H2("How values are spread"), place("of", className="tools tight")],
                         className="row"),
                html.Div(
                    [
                        figure("histogram", "Histogram over time", 300),
                        figure("bands", "Percentiles over time", 300),
                        figure("units", "Units that were ever active", 300),
                    ],
                    className="two",
                ),
            ],
            className="card",
        ),
        html.Div(figure("snapshots", "Snapshots as pictures", 0), className="card maybe"),
    ]  # fmt: skip
    has_units = (
        reading.has(name, names.OUTPUTS)
        and bool(reading.catalogue[name, names.OUTPUTS].units)
        and reading.order.info(name).get("activation", "rectifier") == "rectifier"
    )
    parts = {
        "title": Part(base, lambda: _title(reading, name)),
        "ways": Part(
            repr((base, step, all_layers)), lambda: _ways(opened, all_layers, name, where)
        ),
        "facts": Part(base, lambda: _facts(opened, reading, name)),
        "step": Part(at_step, lambda: _at_step(reading, name, step, asked)),
        "courses": Part(base, lambda: with_step(_courses(reading, name)), figure=True),
        "of": Part(spread, lambda: _of(reading, name, of, quantity, phase)),
        "histogram": Part(
            spread,
            lambda: with_step(_untitled(histogram_spec(reading, of, quantity, phase, 200))),
            figure=True,
        ),
        "bands": Part(
            spread,
            lambda: with_step(_untitled(bands_spec(reading, of, quantity, phase))),
            figure=True,
        ),
        "units": Part(
            repr((base, phase)),
            lambda: with_step(units_spec(reading, name, phase, 200)) if has_units else None,
            figure=True,
        ),
        "snapshots": Part(base, lambda: _snapshots(reading, name), figure=True),
    }
    return Shown(f"{shorten(name or '(model)', 60)} – nethook", body, parts, step=step)


def chosen_series(reading: Reading, name: str, asked: str) -> tuple[str, str]:
    """Whose distribution is shown; it is asked for as `quantity` or `quantity:address`."""
    quantity, _, of = asked.partition(":")
    if (of or name, quantity) in reading.catalogue:
        return of or name, quantity
    for key in _keys(reading, name):
        return key
    return name, names.OUTPUTS


def _keys(reading: Reading, name: str) -> list[tuple[str, str]]:
    """The series of a layer and of its parameters."""
    own = [name, *reading.order.parameters(name)]
    return [(of, quantity) for of in own for quantity in _SHOWN if reading.has(of, quantity)]


def with_step(spec: Spec | None) -> Spec | None:
    """A figure over steps, with a line at the one that is looked at; page.js puts it there."""
    if spec is None:
        return None
    line = {
        "type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1,
        "line": {"color": GREY, "width": 1.5},
    }  # fmt: skip
    spec["layout"]["meta"] = {**spec["layout"].get("meta", {}), "line": line}
    return spec


def _untitled(spec: Spec) -> Spec:
    spec["layout"]["title"]["font"] = {"size": 13}
    return spec


def _title(reading: Reading, name: str) -> Node:
    kind = reading.order.kind(name)
    return html.H1(
        [
            html.Span(shorten(name or "(model)", 80), className="address"),
            html.Span(f" {said(kind, 40)}", className="soft"),
        ]
    )


def _ways(opened: Opened, layers: list[str], name: str, where: Place) -> Node:
    """To the layer before and after, and to any."""
    options = [(layer or ".", layer or "(model)") for layer in layers]
    if name not in layers:
        options.insert(0, (name or ".", name or "(model)"))
    index = layers.index(name) if name in layers else -1
    ways: list[Node] = []
    for text, other, label in (("‹", index - 1, "before"), ("›", index + 1, "after")):
        there = index >= 0 and 0 <= other < len(layers)
        to = _with(where, opened, layers[other]) if there else ""
        ways.append(
            anchor(text, to, className="button", id=f"layer-{label}", title=f"The layer {label}")
            if to
            else html.Span(text, className="button off")
        )
    return [ways[0], select("at", options, name or ".", "Layer"), ways[1]]


def _with(where: Place, opened: Opened, name: str) -> str:
    kept = {field: where.text(field) for field in ("step", "q", "phase") if where.text(field)}
    return site_link(opened.entry.id, name, **kept)


def _facts(opened: Opened, reading: Reading, name: str) -> Node:
    info = reading.order.info(name)
    rows: list[tuple[str, Node]] = []
    if shape := shape_text(info.get("shape")):
        rows.append(("returns", shape))
    rows += [(what, said(value, 120)) for what, value in layer_facts(reading, name)]
    told = [finding for finding in reading.findings if name in finding.sites]
    links = [
        anchor(
            badge(f"{finding.severity} · {finding.code}", finding.severity),
            run_link(opened.entry.id, "findings", n=finding.anchor.rpartition("-")[2]),
        )
        for finding in told[:8]
    ]
    chips = [html.Div(links, className="chips")] if links else []
    return html.Div([*chips, facts(rows)], className="card")


def _at_step(reading: Reading, name: str, step: int, asked: int | None) -> Node:
    """The numbers of the window that has this step."""
    last = max(0, reading.last_step)
    keys = _keys(reading, name)
    rows = [_numbers(series, step) for series in reading.near(keys, step)]
    latest = " (the latest)" if asked is None else ""
    head = html.Div(
        [
            slider("step", step, last, f"Step{latest}"),
            html.Button(
                "latest", type="button", className="param small",
                **attributes(data_param="step", data_value=""),
            ),
        ],
        className="tools",
    )  # fmt: skip
    right = range(1, len(_HEADS))
    return [head, table(_HEADS, [row for row in rows if row], right=list(right))]


def _numbers(series: Series, step: int) -> list[Node]:
    what = WORDS.get(series.quantity, series.quantity)
    short = series.address.rpartition(".")[2]
    name = what if series.quantity in (names.OUTPUTS, names.GRADS) else f"{short}: {what}"
    if not len(series):
        return []
    index = int(np.clip(np.searchsorted(series.last_step, step), 0, len(series) - 1))
    if not series.seen[index]:  # not measured there: the last time before that it was
        before = np.flatnonzero(series.seen[: index + 1])
        if not before.size:
            return [shorten(name, 48), *[""] * 6, "", "not yet"]
        index = int(before[-1])
    values = [float(series[column][index]) for column in _COLUMNS]
    shown = [number(value, 4) for value in values[:4]] + [share(value) for value in values[4:]]
    first, end = int(series.first_step[index]), int(series.last_step[index])
    when = f"{first:,}" if first == end else f"{first:,} – {end:,}"
    return [shorten(name, 48), *shown, when, share(float(series.coverage[index]))]


def _courses(reading: Reading, name: str) -> Spec | None:
    panels = [panel for panel in layer_panels(reading, name) if panel.lines]
    if not panels:
        return None
    return curves(panels, reading.gaps, height=70 + 112 * len(panels), points=400)


def _of(reading: Reading, name: str, of: str, quantity: str, phase: str) -> Node:
    options = []
    for address_of, quantity in _keys(reading, name):
        short = address_of.rpartition(".")[2]
        text = (
            WORDS.get(quantity, quantity)
            if address_of == name
            else f"{short}: {WORDS.get(quantity, quantity)}"
        )
        options.append((quantity if address_of == name else f"{quantity}:{address_of}", text))
    chosen = quantity if of == name else f"{quantity}:{of}"
    phases = [
        (phase, {"train": "training", "eval": "evaluation"}.get(phase, phase)) for phase in PHASES
    ]
    return [select("of", options, chosen, "Of"), select("phase", phases, phase, "Phase")]


def _snapshots(reading: Reading, name: str) -> Spec | None:
    kept = reading.snapshots.get(name)
    if not kept:
        return None
    arrays = {shot.step: shot.values for shot in kept}
    spec = tensor_specs.snapshots_spec(arrays, name, sample=0, channels=12)
    spec["layout"]["height"] = min(spec["layout"]["height"], 120 + 130 * len(arrays))
    return spec
