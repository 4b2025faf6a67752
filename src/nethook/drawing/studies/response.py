"""A number over another that was set: its mean with a band, such as an effect over strengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import BLUE, faint
from nethook.text.escape import plotly_text


def response(
    title: str, x: Floats, mean: Floats, low: Floats, high: Floats, *, axes: tuple[str, str]
) -> Spec:
    """The mean as a line with markers; the band is left out where it is not known."""
    order = np.argsort(np.asarray(x, float), kind="stable")
    x, mean, low, high = (np.asarray(each, float)[order] for each in (x, mean, low, high))
    data: list[dict[str, Any]] = []
    if np.isfinite(low).all() and np.isfinite(high).all():
        edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0, "color": BLUE},
                "showlegend": False, "hoverinfo": "skip"}  # fmt: skip
        data += [
            {**edge, "y": low},
            {**edge, "y": high, "fill": "tonexty", "fillcolor": faint(BLUE, 0.2)},
        ]
    data.append(
        {
            "type": "scatter", "mode": "lines+markers", "x": x, "y": mean,
            "line": {"color": BLUE, "width": 2}, "marker": {"color": BLUE, "size": 7},
            "showlegend": False,
            "customdata": np.stack([low, high], axis=-1),
            "hovertemplate": "%{x:.3~g}: %{y:.4~g}  (%{customdata[0]:.4~g} … "
            "%{customdata[1]:.4~g})<extra></extra>",
        }
    )  # fmt: skip
    layout = {
        "title": {"text": plotly_text(title)},
        "height": 340,
        "showlegend": False,  # the band has no name, and one line needs none
        "xaxis": {"title": {"text": plotly_text(axes[0])}},
        "yaxis": {"title": {"text": plotly_text(axes[1])}},
    }
    return {"data": data, "layout": layout}
