"""A map of the input with a frame: what a place inside a network depends on."""

from __future__ import annotations

from typing import Any

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import SEQUENTIAL, VERMILION
from nethook.text.escape import plotly_text


def field_map(title: str, values: Floats, frame: tuple[int, int, int, int]) -> Spec:
    """Values (height, width) as colours; the frame is (top, bottom, left, right), ends excluded."""
    values = np.asarray(values, float)
    top, bottom, left, right = (edge - 0.5 for edge in frame)
    height, width = values.shape
    trace = {
        "type": "heatmap", "z": values, "coloraxis": "coloraxis",
        "hovertemplate": "row %{y}, column %{x}: %{z:.3~g}<extra></extra>",
    }  # fmt: skip
    outline = {
        "type": "scatter", "mode": "lines", "x": [left, right, right, left, left],
        "y": [top, top, bottom, bottom, top], "line": {"color": VERMILION, "width": 2},
        "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip
    tall = max(160, min(620, int(760 * height / max(1, width))))
    layout: dict[str, Any] = {
        "title": {"text": plotly_text(title)},
        "height": tall + 90,
        "coloraxis": {
            "cmin": 0.0, "cmax": float(values.max()) or 1.0, "colorscale": SEQUENTIAL,
            "colorbar": {"title": {"text": "mean |gradient|"}, "tickformat": ".2~g"},
        },
        "xaxis": {"range": [-0.5, width - 0.5], "showgrid": False, "constrain": "domain"},
        "yaxis": {"range": [height - 0.5, -0.5], "showgrid": False, "constrain": "domain"},
    }  # fmt: skip
    if height > 1:
        layout["yaxis"]["scaleanchor"] = "x"
    return {"data": [trace, outline], "layout": layout}
