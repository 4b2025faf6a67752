"""How the values of one layer were spread over the run: every bin, or bands of percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Cells, Floats, Integers, Spec
from nethook.drawing.palette import BLUE, GREY, TWO, VERMILION, faint
from nethook.drawing.training.heatmap import colour_axis, edges, height_of
from nethook.text.escape import labels, plotly_text
from nethook.text.numbers import number, share

_ROWS: Final = 72  # bins that a figure of this height can show
_TINY: Final = 0.01  # share of the elements that are drawn as "about zero"
_HEIGHT: Final = 300


def histogram_over_time(
    title: str,
    first: Integers,
    last: Integers,
    counts: Integers,
    values: Floats,
    *,
    columns: int = 256,
) -> Spec:
    """Counts (spans, bins) as shares of their span; bins are spaced by magnitude around zero."""
    first, last, counts = merge_spans(first, last, counts, columns)
    groups = bin_groups(counts.sum(axis=0), values)
    merged = np.add.reduceat(counts, [begin for begin, _ in groups], axis=1) if groups else counts
    total = np.maximum(merged.sum(axis=1, keepdims=True), 1)
    shares = (merged / total).T  # (bins, spans)
    cells = Cells(np.where(shares > 0, shares, np.nan)[None], log=True)
    names = [_name(values[begin:end]) for begin, end in groups]
    ticks = _ticks(groups, values)
    layout: dict[str, Any] = {
        "title": {"text": plotly_text(title)},
        "height": _HEIGHT,
        "coloraxis": colour_axis(cells, "log", all_time=False),
        "xaxis": {"title": {"text": "step"}, "tickformat": ",~f", "showgrid": False},
        "yaxis": {
            "type": "category", "title": {"text": "value"}, "showgrid": False,
            "tickmode": "array", "tickvals": [row for row, _ in ticks],
            "ticktext": [text for _, text in ticks],
        },
    }  # fmt: skip
    layout["coloraxis"]["colorbar"] |= {
        "title": {"text": "share of elements"},
        "ticktext": [share(10.0**power) for power in layout["coloraxis"]["colorbar"]["tickvals"]],
    }
    trace = {
        "type": "heatmap",
        "cells": cells,
        "x": edges(first, last),
        "y": names,
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "hovertemplate": "step %{x:,.0f}<br>%{customdata[0]:.2~%} of the elements are about "
        "%{y}<extra></extra>",
    }
    return {"data": [trace], "layout": layout}


def merge_spans(
    first: Integers, last: Integers, counts: Integers, columns: int
) -> tuple[Integers, Integers, Integers]:
    """Spans added to each other until there are at most `columns`."""
    if len(first) <= columns:
        return first, last, counts
    starts = np.linspace(0, len(first), columns, endpoint=False).astype(np.int64)
    ends = np.append(starts[1:], len(first)) - 1
    return first[starts], last[ends], np.add.reduceat(counts, starts, axis=0)


def bin_groups(total: Integers, values: Floats) -> list[tuple[int, int]]:
    """Which bins make a row each, from the least value to the greatest.

    Magnitudes below which next to nothing lies are one row around zero, and what is empty at both
    ends is left out; where there are still more rows than can be seen, neighbours share one.
    """
    there = np.flatnonzero(total)
    if not there.size:
        return []
    low, high = int(there[0]), int(there[-1]) + 1
    size = np.abs(values)
    order = np.argsort(size[low:high], kind="stable")
    # Zeros are no reason to look closely at what is nearly zero: half of a rectifier's are.
    running = np.cumsum(np.where(size > 0, total, 0)[low:high][order])
    small = running <= _TINY * max(1, running[-1])
    tiny = float(size[low:high][order][small].max()) if small.any() else 0.0
    tiny = max(tiny, float(size[low:high].max()) * 2.0**-24)
    rows: list[tuple[int, int]] = []
    negative = np.flatnonzero(values[low:high] < -tiny) + low
    positive = np.flatnonzero(values[low:high] > tiny) + low
    every = 1
    while (len(negative) + len(positive)) // every > _ROWS:
        every += 1
    # Cut from zero outwards, so that both sides are cut alike.
    middle = (
        int(negative[-1]) + 1 if negative.size else low,
        int(positive[0]) if positive.size else high,
    )
    rows += [(max(low, end - every), end) for end in range(middle[0], low, -every)]
    rows.reverse()
    if middle[0] < middle[1]:
        rows.append(middle)
    rows += [(begin, min(high, begin + every)) for begin in range(middle[1], high, every)]
    return rows


def _name(values: Floats) -> str:
    """The value that stands for a row."""
    if values[0] <= 0 <= values[-1]:
        most = float(np.abs(values).max())
        return f"0 (less than {number(most, 2)})" if most else "0"
    middle = float(np.sign(values[0]) * np.sqrt(np.abs(values[0] * values[-1])))
    return number(middle, 4)


def _ticks(groups: Sequence[tuple[int, int]], values: Floats) -> list[tuple[int, str]]:
    """Rows that hold a power of ten, or zero."""
    ticks: list[tuple[int, str]] = []
    for row, (begin, end) in enumerate(groups):
        members = values[begin:end]
        if members[0] <= 0 <= members[-1]:
            ticks.append((row, "0"))
            continue
        magnitudes = np.sort(np.abs(members))
        # The ends of a bin are about 9 % from its middle.
        low, high = np.log10(magnitudes[0] / 1.09), np.log10(magnitudes[-1] * 1.09)
        power = int(np.ceil(low))
        if power <= high:
            sign = "−" if members[0] < 0 else ""
            text = sign + number(10.0**power)
            if not ticks or ticks[-1][1] != text:
                ticks.append((row, text))
    return _spaced(ticks, least=max(2, len(groups) // 14))


def _spaced(ticks: list[tuple[int, str]], least: int) -> list[tuple[int, str]]:
    """Ticks that do not touch; zero is kept, and of the others those farther out."""
    zero = next((row for row, text in ticks if text == "0"), None)
    kept: list[tuple[int, str]] = [] if zero is None else [(zero, "0")]
    outward = sorted(ticks, key=lambda tick: -abs(tick[0] - (zero or 0)))
    for row, text in outward:
        if all(abs(row - other) >= least for other, _ in kept):
            kept.append((row, text))
    return sorted(kept)


def bands(
    title: str, first: Integers, last: Integers, quantiles: Floats, shares: Sequence[float]
) -> Spec:
    """Quantiles (spans, shares) as bands around the median; spans without numbers are passed."""
    there = ~np.isnan(quantiles).any(axis=1)  # a gap would tear the bands
    quantiles = quantiles[there]
    middle = (np.asarray(first, dtype=np.float64)[there] + np.asarray(last)[there]) / 2
    data: list[dict[str, Any]] = []
    pairs = len(shares) // 2
    common = {"type": "scatter", "mode": "lines", "x": middle}
    for pair in range(pairs):
        low, high = quantiles[:, pair], quantiles[:, -1 - pair]
        name = f"{_percent(shares[pair])}–{_percent(shares[-1 - pair])} %"
        edge = {"width": 0.6, "color": faint(BLUE, 0.5)}
        text = f"{name}: %{{y:.4~g}}<extra></extra>"
        data.append({**common, "y": low, "line": edge, "hovertemplate": text, "name": name})
        data.append(
            {
                **common, "y": high, "line": edge, "fill": "tonexty", "name": name,
                "fillcolor": faint(BLUE, 0.16 + 0.1 * pair), "hovertemplate": text,
            }
        )  # fmt: skip
    if len(shares) % 2:
        data.append(
            {
                **common, "y": quantiles[:, pairs], "line": {"color": BLUE, "width": 2},
                "name": "median", "hovertemplate": "median: %{y:.4~g}<extra></extra>",
            }
        )  # fmt: skip
    layout = {
        "title": {"text": plotly_text(title)},
        "height": _HEIGHT,
        "hovermode": "x unified",
        "showlegend": False,
        "xaxis": {"title": {"text": "step"}, "tickformat": ",~f", "hoverformat": ",.0f"},
        "yaxis": {"title": {"text": "value"}, "zeroline": True},
    }
    return {"data": data, "layout": layout}


def _percent(value: float) -> str:
    return f"{100 * value:.3g}"


def units_over_time(
    title: str,
    first: Integers,
    last: Integers,
    active: np.ndarray[Any, np.dtype[np.bool_]],
    measured: np.ndarray[Any, np.dtype[np.bool_]],
    *,
    rows: int = 128,
    columns: int = 256,
) -> Spec:
    """Which units (spans, units) were ever active: one row per unit, or per several of them.

    A span that was not measured is a gap.
    """
    both = np.column_stack([active, measured]).astype(np.int64)
    first, last, counts = merge_spans(first, last, both, columns)
    active, measured = counts[:, :-1] > 0, counts[:, -1] > 0
    units = active.shape[1]
    every = max(1, -(-units // rows))
    starts = np.arange(0, units, every)
    share_active = np.add.reduceat(active.astype(np.float64), starts, axis=1)
    share_active /= np.append(starts[1:], units) - starts
    silent = 1.0 - active.mean(axis=1) if units else np.zeros(len(first))
    silent = np.where(measured, silent, np.nan)
    share_active[~measured] = np.nan
    middle = (np.asarray(first, dtype=np.float64) + last) / 2
    what = "unit %{y}" if every == 1 else f"{every} units from %{{y}}"
    data = [
        {
            "type": "scatter", "mode": "lines" if measured.all() else "lines+markers",
            "x": middle, "y": silent, "yaxis": "y2", "marker": {"size": 4, "color": VERMILION},
            "line": {"color": VERMILION, "width": 1.8, "shape": "hvh"},
            "fill": "tozeroy", "fillcolor": faint(VERMILION, 0.15),
            "hovertemplate": "step %{x:,.0f}: %{y:.1%} of the units dead<extra></extra>",
        },
        {
            "type": "heatmap", "cells": Cells(share_active.T[None]), "y": starts,
            "x": edges(first, last), "coloraxis": "coloraxis",
            "hovertemplate": f"{what}, step %{{x:,.0f}}<br>%{{customdata[0]:.0%}} active"
            "<extra></extra>",
        },
    ]  # fmt: skip
    layout = {
        "title": {"text": plotly_text(title)},
        "height": _HEIGHT,
        "showlegend": False,
        "coloraxis": {
            "cmin": 0,
            "cmax": 1,
            "colorscale": TWO,
            "colorbar": {
                "tickvals": [0, 1],
                "ticktext": ["dead", "active"],
                "len": 0.68,
                "y": 0.34,
            },
        },
        "xaxis": {"title": {"text": "step"}, "tickformat": ",~f", "showgrid": False},
        "yaxis": {
            "title": {"text": "unit"},
            "domain": [0, 0.68],
            "autorange": "reversed",
            "showgrid": False,
        },
        "yaxis2": {
            "domain": [0.76, 1],
            "tickformat": ".0%",
            "range": [0, 1.02],
            "nticks": 3,
            "title": {"text": "dead"},
        },
    }
    return {"data": data, "layout": layout}


def values_of_layers(
    title: str, rows: Sequence[str], quantiles: Floats, shares: Sequence[float], zeros: Floats
) -> Spec:
    """How values of several layers are spread at one moment: a bar from low to high quantiles."""
    names = labels(list(rows))
    data = []
    pairs = len(shares) // 2
    for pair in range(pairs):
        low, high = quantiles[:, pair], quantiles[:, -1 - pair]
        text = f"<b>%{{y}}</b><br>{_percent(shares[pair])}–{_percent(shares[-1 - pair])} %: "
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "base": low,
                "x": high - low,
                "marker": {"color": faint(BLUE, 0.25 + 0.3 * pair)},
                "width": 0.5 + 0.12 * pair,
                "customdata": np.column_stack([low, high]),
                "hovertemplate": text
                + "%{customdata[0]:.4~g} to %{customdata[1]:.4~g}<extra></extra>",
            }
        )
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": quantiles[:, pairs],
            "y": names,
            "marker": {
                "color": BLUE,
                "size": 8,
                "symbol": "line-ns",
                "line": {"width": 3, "color": BLUE},
            },
            "customdata": zeros[:, None],
            "hovertemplate": "<b>%{y}</b><br>median %{x:.4~g}, "
            "%{customdata[0]:.1%} zero<extra></extra>",
        }
    )
    layout = {
        "title": {"text": plotly_text(title)},
        "height": height_of(len(names)) + 40,
        "barmode": "overlay",
        "showlegend": False,
        "xaxis": {"title": {"text": "value"}, "zeroline": True, "zerolinecolor": GREY},
        "yaxis": {"autorange": "reversed", "type": "category"},
    }
    return {"data": data, "layout": layout}
