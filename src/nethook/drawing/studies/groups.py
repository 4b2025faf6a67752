"""How numbers of a few groups are distributed: one histogram each, on shared bins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import LINES, faint
from nethook.text.escape import plotly_text

_BINS = 40


def groups(title: str, values: Mapping[str, Floats], *, unit: str) -> Spec:
    """Fractions per bin of each group, as steps."""
    every = np.concatenate([np.asarray(each, float) for each in values.values()])
    low, high = float(every.min()), float(every.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, min(_BINS, max(5, len(every))) + 1)
    data: list[dict[str, Any]] = []
    for index, (name, each) in enumerate(values.items()):
        counts, _ = np.histogram(each, edges)
        share = counts / max(1, len(each))
        data.append(
            {
                "type": "scatter", "mode": "lines", "name": plotly_text(name),
                "x": edges, "y": np.append(share, share[-1]),
                "line": {"color": LINES[index % len(LINES)], "shape": "hv", "width": 1.8},
                "fill": "tozeroy", "fillcolor": faint(LINES[index % len(LINES)], 0.25),
                "hovertemplate": "%{x:.3~g}: %{y:.2~%}<extra>" + plotly_text(name) + "</extra>",
            }
        )  # fmt: skip
    layout = {
        "title": {"text": plotly_text(title)},
        "height": 340,
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.12},
        "xaxis": {"title": {"text": plotly_text(unit)}},
        "yaxis": {"title": {"text": "fraction"}, "rangemode": "tozero"},
    }
    return {"data": data, "layout": layout}
