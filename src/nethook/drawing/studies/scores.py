"""Scores with intervals, beside those of a control and a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import BLUE, GREY, VERMILION
from nethook.text.escape import labels, plotly_text


def score_bars(
    title: str,
    names: Sequence[str],
    scores: Floats,
    low: Floats,
    high: Floats,
    *,
    control: Floats,
    baseline: Floats,
    unit: str,
) -> Spec:
    """A bar per name with its interval, a bar of its control, and a mark at its baseline."""
    scores, low, high = (np.asarray(each, float) for each in (scores, low, high))
    shown = labels(list(names))
    error: dict[str, Any] = {
        "type": "data", "symmetric": False, "array": np.nan_to_num(high - scores),
        "arrayminus": np.nan_to_num(scores - low), "color": GREY, "thickness": 1.2,
    }  # fmt: skip
    data: list[dict[str, Any]] = [
        {
            "type": "bar", "name": "score", "x": shown, "y": scores, "error_y": error,
            "marker": {"color": BLUE}, "offsetgroup": "score",
            "hovertemplate": "<b>%{x}</b>: %{y:.4~g}<extra>score</extra>",
        },
        {
            "type": "bar", "name": "control labels", "x": shown, "y": np.asarray(control, float),
            "marker": {"color": GREY}, "offsetgroup": "control",
            "hovertemplate": "<b>%{x}</b>: %{y:.4~g}<extra>control labels</extra>",
        },
        {
            "type": "scatter", "mode": "markers", "name": "baseline", "x": shown,
            "y": np.asarray(baseline, float),
            "marker": {"color": VERMILION, "size": 9, "symbol": "line-ew-open"},
            "hovertemplate": "<b>%{x}</b>: %{y:.4~g}<extra>baseline</extra>",
        },
    ]  # fmt: skip
    layout = {
        "title": {"text": plotly_text(title)},
        "height": 360,
        "barmode": "group",
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.12},
        "xaxis": {"type": "category", "showgrid": False},
        "yaxis": {"title": {"text": plotly_text(unit)}, "rangemode": "tozero"},
    }
    return {"data": data, "layout": layout}
