"""One layer: its numbers at a step, its course, how its values are distributed, its units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Line, Panel, Spec
from nethook.drawing.palette import GREY
from nethook.drawing.training.curves import curves
from nethook.drawing.training.distribution import (
    bands,
    histogram_over_time,
    merge_spans,
    units_over_time,
)
from nethook.figures.reading import Reading
from nethook.figures.runs import SHARES, WORDS, bands_spec, histogram_spec, units_spec
from nethook.figures.site_order import shape_text
from nethook.page.section import Drawing, Section, Subject
from nethook.page.urls import PHASES, Place
from nethook.runs import names
from nethook.runs.reading.results import Histograms, Series
from nethook.text.escape import shorten
from nethook.text.numbers import number, share

_SHOWN: Final = (names.OUTPUTS, names.GRADS, names.PARAMS, names.PARAM_GRADS, names.UPDATES)
_COLUMNS: Final = ("mean", "std", "min", "max", "zero_share", "nonfinite_share")
HEADS: Final = ("of", "mean", "std", "min", "max", "zeros", "NaN, ∞", "steps", "measured")
_SPANS: Final = 200  # columns of a figure of the page
_PHASES: Final = {"train": "training", "eval": "evaluation", "aux": "other passes"}


def layer(subject: Subject, where: Place, name: str) -> Section:
    """The section of one layer at one step, which is chosen."""
    reading = subject.reading
    step, asked = step_of(reading, where)
    phase = where.phase()
    of, quantity = chosen_series(reading, name, where.text("of"))
    base = repr((subject.tag, name))
    spread = repr((base, of, quantity, phase))
    figures = {
        "courses": Drawing(base, lambda: with_step(_courses(reading, name, 400))),
        "histogram": Drawing(
            spread,
            lambda: with_step(_untitled(histogram_spec(reading, of, quantity, phase, _SPANS))),
        ),
        "bands": Drawing(
            spread, lambda: with_step(_untitled(bands_spec(reading, of, quantity, phase)))
        ),
        "units": Drawing(
            repr((base, phase)),
            lambda: (
                with_step(units_spec(reading, name, phase, _SPANS))
                if has_units(reading, name)
                else None
            ),
        ),
    }

    def data() -> dict[str, Any]:
        chosen = quantity if of == name else f"{quantity}:{of}"
        return {
            **_about(subject, name),
            **_ways(subject, where, name),
            "folded": False,
            "step": step,
            "last": max(0, reading.last_step),
            "latest": asked is None,
            "heads": HEADS,
            "numbers": numbers_at(reading, name, step),
            "of": chosen,
            "offered": [(each, text) for each, text in _offered(reading, name)],
            "phase": phase,
            "phases": [(each, _PHASES[each]) for each in PHASES],
            "wide": ["courses"],
            "figures": ["histogram", "bands", "units"],
        }

    return Section("layer", repr((spread, step, asked)), data, figures)


def folded_layer(
    subject: Subject, index: int, name: str, columns: int, *, is_open: bool = False
) -> Section:
    """The section of a layer that is unfolded: for a report. With no columns it has no figures."""
    specs = layer_specs(subject.reading, name, columns) if columns else {}
    figures = {
        f"layer-{index}-{kind}": Drawing.ready(spec, subject.tag) for kind, spec in specs.items()
    }

    def data() -> dict[str, Any]:
        wide = [figure for figure in figures if figure.endswith("-courses")]
        return {
            **_about(subject, name),
            "folded": True,
            "open": is_open,
            "id": f"layer-{index}",
            "latest_numbers": latest_numbers(subject.reading, name),
            "wide": wide,
            "figures": [figure for figure in figures if figure not in wide],
        }

    return Section(f"layer-{index}", subject.tag, data, figures)


def step_of(reading: Reading, where: Place) -> tuple[int, int | None]:
    """The step that is looked at, and the one that was asked for."""
    last, asked = max(0, reading.last_step), where.number("step")
    return (last if asked is None else min(asked, last)), asked


def has_units(reading: Reading, name: str) -> bool:
    """Whether a layer's units can be dead, and are recorded."""
    return (
        reading.has(name, names.OUTPUTS)
        and bool(reading.catalogue[name, names.OUTPUTS].units)
        and reading.order.info(name).get("activation", "rectifier") == "rectifier"
    )


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


def _about(subject: Subject, name: str) -> dict[str, Any]:
    reading = subject.reading
    shape = shape_text(reading.order.info(name).get("shape"))
    told = [finding for finding in reading.findings if name in finding.sites]
    return {
        "address": name,
        "kind": reading.order.kind(name),
        "shape": shape,
        "facts": [*([("returns", shape)] if shape else []), *layer_facts(reading, name)],
        "findings": [(finding, subject.links.finding(finding.anchor)) for finding in told[:12]],
    }


def _ways(subject: Subject, where: Place, name: str) -> dict[str, Any]:
    """To the layer before and after, and to any."""
    layers = subject.reading.layers()
    options = [(layer or ".", layer or "(model)") for layer in layers]
    if name not in layers:
        options.insert(0, (name or ".", name or "(model)"))
    index = layers.index(name) if name in layers else -1
    kept = {field: where.text(field) for field in ("step", "q", "phase") if where.text(field)}
    ways = {}
    for way, other in (("before", index - 1), ("after", index + 1)):
        there = index >= 0 and 0 <= other < len(layers)
        ways[way] = subject.links.layer(layers[other], **kept) if there else ""
    return {"options": options, "at": name or ".", **ways}


def _offered(reading: Reading, name: str) -> list[tuple[str, str]]:
    """The series whose distribution can be shown."""
    options = []
    for of, quantity in _keys(reading, name):
        word = WORDS.get(quantity, quantity)
        if of == name:
            options.append((quantity, word))
        else:
            options.append((f"{quantity}:{of}", f"{of.rpartition('.')[2]}: {word}"))
    return options


# Numbers


def numbers_at(reading: Reading, name: str, step: int) -> list[list[str]]:
    """The numbers of the windows that have this step: a row a series."""
    rows = [_numbers(series, step) for series in reading.near(_keys(reading, name), step)]
    return [row for row in rows if row]


def _numbers(series: Series, step: int) -> list[str]:
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


def latest_numbers(reading: Reading, address: str) -> str:
    """What stands beside a folded layer: its latest numbers."""
    parts = []
    for word, last, is_share in latest(reading, address):
        parts.append(f"{word} {share(last) if is_share else number(last)}")
    return " · ".join(parts)


def latest(reading: Reading, address: str) -> list[tuple[str, float, bool]]:
    """The latest numbers of a layer: what they are, how much, and whether that is a share."""
    found = []
    for name, word in (("spread", "std"), ("output_gradients", "grad"), ("silent", "dead")):
        line = reading.row(name, address)
        if line is None:
            continue
        finite = np.asarray(line.value)[np.isfinite(line.value)]
        if finite.size:
            found.append((word, float(finite[-1]), name == "silent"))
    return found


def layer_facts(reading: Reading, address: str) -> list[tuple[str, str]]:
    """Parameters, calls, type, device and source line of a layer."""
    info = reading.order.info(address)
    facts: list[tuple[str, str]] = []
    for parameter in reading.order.parameters(address):
        about = reading.order.info(parameter)
        shape = shape_text(about.get("shape"))
        frozen = "" if about.get("requires_grad", True) else ", frozen"
        facts.append((parameter.rpartition(".")[2], f"{shape or '?'}{frozen}"))
    calls = info.get("calls")
    if isinstance(calls, dict):
        counted = [
            (_PHASES.get(str(phase), str(phase)), count)
            for phase, count in calls.items()
            if isinstance(count, int) and count
        ]
        facts.append(
            ("measured calls", ", ".join(f"{n:,} in {phase}" for phase, n in counted) or "none")
        )
    told = ("dtype", "device", "activation", "source")
    return facts + [(name, info[name]) for name in told if isinstance(info.get(name), str)]


# Figures


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


def _courses(reading: Reading, name: str, points: int) -> Spec | None:
    panels = [panel for panel in layer_panels(reading, name) if panel.lines]
    if not panels:
        return None
    return curves(panels, reading.gaps, height=70 + 112 * len(panels), points=points)


def layer_specs(reading: Reading, address: str, columns: int) -> Mapping[str, Spec]:
    """The figures of a layer with so many columns, by kind."""
    specs: dict[str, Spec] = {}
    if courses := _courses(reading, address, 3 * columns):
        specs["courses"] = courses
    for quantity in (names.OUTPUTS, names.GRADS):
        if not reading.has(address, quantity):
            continue
        histograms = reading.histograms(address, quantity)
        if not histograms.counts.any():
            continue
        merged = merge_spans(
            histograms.first_step, histograms.last_step, histograms.counts, columns
        )
        title = f"{WORDS[quantity].capitalize()} over time"
        specs[f"histogram-{quantity}"] = histogram_over_time(title, *merged, histograms.values)
        if quantity == names.OUTPUTS:
            first, last, counts = (column.astype(np.int64) for column in merged)
            whole = Histograms(address, quantity, "train", first, last, counts)
            quantiles = whole.quantiles(SHARES)
            specs["bands"] = bands("Percentiles of outputs", first, last, quantiles, SHARES)
    if has_units(reading, address):
        units = reading.units(address)
        if len(units):
            specs["units"] = units_over_time(
                "Units that were ever active", units.first_step, units.last_step, units.active,
                units.measured, rows=128 if columns >= 128 else 48, columns=columns,
            )  # fmt: skip
    return specs


def layer_panels(reading: Reading, address: str) -> list[Panel]:
    """Spread, gradients and updates of a layer and its parameters."""
    own = reading.order.parameters(address)
    if not own:  # a run that does not say whose they are: those below the layer's name
        grid = reading.grid("weights")
        own = [row for row in grid.rows if row.rpartition(".")[0] == address] if grid else []
    wanted = (
        ("spread", [address]),
        ("output_gradients", [address]),
        ("gradients", own),
        ("updates", own),
    )
    panels = []
    for name, rows in wanted:
        shown = reading.grid(name)
        if shown is None:
            continue
        lines = [
            _short(line, address) for row in rows if (line := reading.row(name, row)) is not None
        ]
        quantity = shown.quantity
        positive = any((np.asarray(line.value) > 0).any() for line in lines)
        scale = quantity.scale if quantity.scale != "log" or positive else "linear"
        panels.append(Panel(quantity.title.lower(), lines, quantity.explain, scale=scale))
    return panels


def _short(line: Line, address: str) -> Line:
    name = line.name.removeprefix(f"{address}.") or line.name
    return replace(line, name=name)
