"""How large values are in a network that has just been initialised: over depth, and over width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import BLUE, GREEN, GREY, LINES, VERMILION
from nethook.text.escape import plotly_text

_TICKS = 12
_SIZE = "root mean square"
_BELOW = 0.3  # of the height: the cosines, below the scales


def scales_over_depth(data: dict[str, Any]) -> Spec:
    """Scales forward and backward, and the cosine of two inputs, layer by layer.

    Arguments:
        data: `model`, and `rows` with `address`, `forward`, `backward`, `expected`, `cosine`.
    """
    rows = data["rows"]
    x = np.arange(1, len(rows) + 1)
    layers = [plotly_text(row["address"]) for row in rows]

    def line(key: str, name: str, colour: str, **more: Any) -> dict[str, Any]:
        return {
            "type": "scatter", "mode": "lines+markers", "x": x, "name": name, "customdata": layers,
            "y": _with_gaps([row[key] for row in rows]), "line": {"color": colour, "width": 1.8},
            "marker": {"size": 5, "color": colour},
            "hovertemplate": f"<b>%{{customdata}}</b><br>{name} %{{y:.4~g}}<extra></extra>", **more,
        }  # fmt: skip

    expected = line("expected", "expected", GREY, mode="lines")
    expected["line"] = {"color": GREY, "width": 1.8, "dash": "dot"}
    traces = [
        line("forward", "forward", BLUE),
        line("backward", "backward", VERMILION),
        expected,
        line("cosine", "cosine of two inputs", GREEN, yaxis="y2"),
    ]
    layout = {
        "title": {"text": f"Scales of {plotly_text(data['model'])}"},
        "height": 420,
        "xaxis": {
            "title": {"text": "layer, in order of execution"},
            "anchor": "y2",
            # There is no layer between two.
            "tickvals": x[:: max(1, len(x) // _TICKS)],
        },
        "yaxis": {"type": "log", "title": {"text": _SIZE}, "domain": [_BELOW + 0.07, 1.0]},
        "yaxis2": {"title": {"text": "cosine"}, "domain": [0.0, _BELOW], "range": [-0.05, 1.05]},
        **_LEGEND,
    }
    return {"data": traces, "layout": layout}


def scales_over_width(data: dict[str, Any]) -> Spec:
    """The scale of each layer over the width of the model.

    Arguments:
        data: `widths`, `steps` of training, and `rows` with `address` and `forward` per width.
    """
    widths = np.asarray(data["widths"], float)
    traces = []
    for index, row in enumerate(data["rows"]):
        name, colour = plotly_text(row["address"]), LINES[index % len(LINES)]
        traces.append(
            {
                "type": "scatter", "mode": "lines+markers", "x": widths, "name": name,
                "y": _with_gaps(row["forward"]), "line": {"color": colour, "width": 1.8},
                "marker": {"size": 5, "color": colour},
                "hovertemplate": f"<b>{name}</b><br>width %{{x}}: %{{y:.4~g}}<extra></extra>",
            }
        )  # fmt: skip
    after = f" after {data['steps']} steps" if data["steps"] else ""
    texts = [str(width) for width in data["widths"]]
    layout = {
        "title": {"text": f"Scales over width{after}"},
        "height": 380,
        "xaxis": {"type": "log", "title": {"text": "width"}, "tickvals": widths, "ticktext": texts},
        "yaxis": {"type": "log", "title": {"text": _SIZE}},
        **_LEGEND,
    }
    return {"data": traces, "layout": layout}


_LEGEND = {
    "showlegend": True,
    "legend": {"orientation": "h", "x": 1.0, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
    "margin": {"t": 66},
}


def _with_gaps(values: Sequence[float]) -> Floats:
    """What is not finite is a gap in the line."""
    found = np.asarray(values, float)
    return np.where(np.isfinite(found), found, np.nan)
