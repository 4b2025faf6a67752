"""Layers over steps: every layer a row, in order of execution, every colour a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Cells, Floats, Grid, Integers, Line, Mark, Spec
from nethook.drawing.decimate import COLUMNS, robust_range, thin_grid
from nethook.drawing.palette import DIVERGING, GREY, SEQUENTIAL, faint
from nethook.drawing.training.curves import onset
from nethook.text.escape import labels, plotly_text
from nethook.text.numbers import log_ticks, power_ticks

_TALLEST: Final = 1100
_STRIP: Final = 34  # pixels of what was measured


def heatmap(
    grid: Grid,
    marks: Sequence[Mark] = (),
    *,
    all_time: bool = False,
    columns: int = COLUMNS,
    titled: bool = True,
    switch: bool = True,
    measured: Line | None = None,
) -> Spec:
    """A grid as colours; two buttons choose between robust colours and the range of all.

    `measured` is drawn above it: the share of steps that the colours are from.
    """
    quantity = grid.quantity
    grid = thin_grid(grid, columns)
    cells = cells_of(grid)
    one = cells.planes.shape[0] == 1
    values = "%{customdata[0]" + _form(quantity.scale) + "}"
    if not one:
        values = (
            f"at most {values}, at least %{{customdata[1]{_form(quantity.scale)}}}, "
            f"last %{{customdata[2]{_form(quantity.scale)}}}"
        )
    unit = f" {plotly_text(quantity.unit)}" if quantity.unit else ""
    trace = {
        "type": "heatmap",
        "cells": cells,
        "x": edges(grid.first_step, grid.last_step),
        "y": labels(list(grid.rows)),
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "hovertemplate": f"<b>%{{y}}</b>  step %{{x:,.0f}}<br>{values}{unit}<extra></extra>",
    }
    layout: dict[str, Any] = {
        "height": height_of(len(grid.rows)),
        "coloraxis": colour_axis(cells, quantity.scale, all_time=all_time),
        "xaxis": {
            "title": {"text": "step"},
            "tickformat": ",~f",
            "showgrid": False,
            "range": [float(grid.first_step[0]) - 0.5, float(grid.last_step[-1]) + 0.5],
        },
        "yaxis": {"autorange": "reversed", "type": "category", "showgrid": False},
        "shapes": [shape for mark in marks[:20] for shape in onset(mark)[:1]],
        "updatemenus": [range_switch(cells, quantity.scale, all_time=all_time)] if switch else [],
        "margin": {"t": 62 if titled else 40},
    }
    if titled:
        layout["title"] = {
            "text": f"{plotly_text(quantity.title)}<br><sup>{plotly_text(quantity.explain)}</sup>",
        }
    data = [trace]
    if measured is not None:
        data.append(_measured(measured, layout))
    return {"data": data, "layout": layout}


def _measured(line: Line, layout: dict[str, Any]) -> dict[str, Any]:
    """The share that was measured, in a strip above the colours."""
    layout["height"] += _STRIP
    top = 1 - _STRIP / max(1, layout["height"] - 110)
    layout["yaxis"]["domain"] = [0, top - 0.02]
    layout["coloraxis"]["colorbar"] |= {"len": top - 0.02, "y": (top - 0.02) / 2}
    layout["yaxis2"] = {
        "domain": [top, 1], "range": [0, 1.05], "tickformat": ".0%", "tickvals": [0, 1],
        "fixedrange": True, "showgrid": False,
    }  # fmt: skip
    return {
        "type": "scatter", "mode": "lines", "x": np.asarray(line.step), "y": line.value,
        "yaxis": "y2", "fill": "tozeroy", "fillcolor": faint(GREY, 0.25), "name": "measured",
        "line": {"color": GREY, "width": 1, "shape": "vh"}, "showlegend": False,
        "hovertemplate": "step %{x:,.0f}: %{y:.0%} of the steps measured<extra></extra>",
    }  # fmt: skip


def height_of(rows: int) -> int:
    """Pixels for so many rows: enough to read names, as long as the whole fits a screen."""
    return int(min(_TALLEST, 120 + rows * (18 if rows <= 40 else max(6, 720 / rows))))


def edges(first: Integers, last: Integers) -> Floats:
    """The edges of columns that stand for steps `first` to `last`."""
    if not len(first):
        return np.zeros(0)
    return np.append(np.asarray(first) - 0.5, last[-1] + 0.5)


def cells_of(grid: Grid) -> Cells:
    """The cells of a grid: one plane where each column is one window, else three."""
    same = grid.least is grid.greatest or np.array_equal(grid.least, grid.greatest, equal_nan=True)
    if same:
        planes = np.asarray(grid.greatest, dtype=np.float64)[None]
    else:
        planes = np.stack([grid.greatest, grid.least, grid.last]).astype(np.float64)
        if grid.quantity.scale == "signed":  # the one that is farther from zero is the colour
            further = np.abs(planes[1]) > np.abs(planes[0])
            first = np.where(further, planes[1], planes[0])
            planes = np.stack([first, planes[1], planes[2]])
    return Cells(planes, log=grid.quantity.scale == "log")


def _form(scale: str) -> str:
    return ":.2~%" if scale == "share" else ":.3~g"


def _ranges(cells: Cells, scale: str, *, all_time: bool) -> tuple[float, float]:
    colours = cells.colours()
    finite = colours[np.isfinite(colours)]
    everything = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low, high = everything if all_time else robust_range(colours)
    if scale == "share":
        low, high = 0.0, (high if high > 0 else 1.0)
    elif scale == "signed":
        most = max(abs(low), abs(high)) or 1.0
        low, high = -most, most
    if low == high:
        low, high = low - 0.5, high + 0.5
    return low, high


def colour_axis(cells: Cells, scale: str, *, all_time: bool) -> dict[str, Any]:
    """Range, colours and ticks of the colours."""
    low, high = _ranges(cells, scale, all_time=all_time)
    bar: dict[str, Any] = {"len": 1.0, "y": 0.5}
    if scale == "log":
        bar["tickvals"], bar["ticktext"] = _log_ticks(cells, low, high)
    elif scale == "share":
        bar["tickformat"] = ".0%" if high >= 0.05 else ".2~%"
    return {
        "cmin": low,
        "cmax": high,
        "colorscale": DIVERGING if scale == "signed" else SEQUENTIAL,
        "colorbar": bar,
    }


def _log_ticks(cells: Cells, low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks of all values there are, and at least two of them among the colours that are used."""
    first, last = cells.ends()
    places, words = power_ticks(min(low, first), max(high, last))
    if sum(low <= place <= high for place in places) > 1:
        return places, words
    values, said = log_ticks(10.0**low, 10.0**high)
    between = {math.log10(value): word for value, word in zip(values, said, strict=True)}
    outside = {p: w for p, w in zip(places, words, strict=True) if not low <= p <= high}
    ticks = dict(sorted((outside | between).items()))
    return list(ticks), list(ticks.values())


def range_switch(cells: Cells, scale: str, *, all_time: bool) -> dict[str, Any]:
    """Buttons: robust colours, or the range of all values."""
    buttons = []
    for label, everything in (("robust", False), ("all-time", True)):
        low, high = _ranges(cells, scale, all_time=everything)
        change = {"coloraxis.cmin": low, "coloraxis.cmax": high}
        buttons.append({"label": label, "method": "relayout", "args": [change]})
    return {
        "type": "buttons", "direction": "right", "buttons": buttons, "active": int(all_time),
        "x": 1.0, "xanchor": "right", "y": 1.0, "yanchor": "bottom", "pad": {"b": 6, "t": 0},
        "showactive": True,
    }  # fmt: skip
