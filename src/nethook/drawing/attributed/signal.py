"""A curve of attributions below the signal that it explains."""

from __future__ import annotations

from typing import Any

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import BLUE, GREY, VERMILION
from nethook.text.escape import plotly_text


def signal_spec(title: str, signal: Floats | None, values: Floats) -> Spec:
    """The signal above, (length,) each; what speaks for the target and what against it below."""
    values = np.asarray(values, dtype=np.float64)
    x = np.arange(len(values))
    parts = ((VERMILION, values.clip(min=0), "for"), (BLUE, values.clip(max=0), "against"))
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines", "x": x, "y": part, "name": name,
            "line": {"color": colour, "width": 1}, "fill": "tozeroy", "fillcolor": colour,
            "hovertemplate": "%{x}: %{y:.4~g}<extra></extra>",
        }
        for colour, part, name in parts
    ]  # fmt: skip
    layout: dict[str, Any] = {
        "title": {"text": plotly_text(title)},
        "height": 420,
        "showlegend": False,
        "xaxis": {"title": {"text": "sample"}, "anchor": "y"},
        "yaxis": {"title": {"text": "attribution"}, "domain": [0.0, 1.0]},
    }
    if signal is not None:
        layout["yaxis"]["domain"] = [0.0, 0.48]
        layout["yaxis2"] = {"title": {"text": "signal"}, "domain": [0.54, 1.0], "anchor": "x"}
        data.append({
            "type": "scatter", "mode": "lines", "x": x, "y": np.asarray(signal, dtype=np.float64),
            "yaxis": "y2", "line": {"color": GREY, "width": 1}, "name": "signal",
            "hovertemplate": "%{x}: %{y:.4~g}<extra></extra>",
        })  # fmt: skip
    return {"data": data, "layout": layout}
