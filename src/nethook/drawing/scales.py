"""Figures of a start: scales over depth, and over width. From plain data."""

from __future__ import annotations

import math
from typing import Any

_COLOURS = {"forward": "#1f5fa8", "backward": "#c2571a", "cosine": "#4d7d2f"}


def scales_figure(data: dict[str, Any]) -> Any:
    """Scale forward, scale backward and cosine of inputs, layer by layer."""
    go, subplots = _plotly()
    rows = data["rows"]
    layers = [row["address"] for row in rows]
    numbers = list(range(1, len(rows) + 1))
    figure = subplots.make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[0.65, 0.35], vertical_spacing=0.08
    )
    for name in ("forward", "backward"):
        line = go.Scatter(
            x=numbers, y=[_finite(row[name]) for row in rows], customdata=layers, name=name,
            mode="lines+markers", line={"color": _COLOURS[name]},
            hovertemplate="%{customdata}<br>%{y:.4g}<extra>" + name + "</extra>",
        )  # fmt: skip
        figure.add_trace(line, row=1, col=1)
    expected = go.Scatter(
        x=numbers, y=[row["expected"] for row in rows], name="expected", mode="lines",
        line={"color": "#8a8a8a", "dash": "dot"},
    )  # fmt: skip
    figure.add_trace(expected, row=1, col=1)
    cosine = go.Scatter(
        x=numbers, y=[_finite(row["cosine"]) for row in rows], customdata=layers,
        name="cosine of two inputs", mode="lines+markers", line={"color": _COLOURS["cosine"]},
    )  # fmt: skip
    figure.add_trace(cosine, row=2, col=1)
    figure.update_yaxes(type="log", title_text="root mean square", row=1, col=1)
    figure.update_yaxes(range=[-0.05, 1.05], title_text="cosine", row=2, col=1)
    figure.update_xaxes(title_text="layer, in order of execution", row=2, col=1)
    figure.update_layout(title=f"Scales of {data['model']}", template="plotly_white")
    return figure


def sweep_figure(data: dict[str, Any]) -> Any:
    """The scale of each layer over the width of the model."""
    go, _ = _plotly()
    figure = go.Figure()
    for row in data["rows"]:
        scales = [_finite(scale) for scale in row["forward"]]
        line = go.Scatter(x=data["widths"], y=scales, name=row["address"], mode="lines+markers")
        figure.add_trace(line)
    figure.update_xaxes(type="log", title_text="width", tickvals=data["widths"])
    figure.update_yaxes(type="log", title_text="root mean square")
    after = f" after {data['steps']} steps" if data["steps"] else ""
    figure.update_layout(title=f"Scales over width{after}", template="plotly_white")
    return figure


def _plotly() -> tuple[Any, Any]:
    try:
        from plotly import graph_objects, subplots
    except ImportError as error:
        raise ImportError("figures need plotly: pip install 'nethook[ui]'.") from error
    return graph_objects, subplots


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None  # a gap in the line
