"""One number of every layer at some steps, from the first layer to the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nethook.drawing.data import Floats, Quantity, Spec
from nethook.drawing.palette import GREY, LINES
from nethook.drawing.training.heatmap import height_of
from nethook.text.escape import labels, plotly_text
from nethook.text.numbers import log_ticks


@dataclass(frozen=True, eq=False)
class Profile:
    """A value for each layer, under a name such as `step 100`; NaN where there is none."""

    name: str
    values: Floats


def depth(
    quantity: Quantity,
    rows: Sequence[str],
    profiles: Sequence[Profile],
    *,
    threshold: float | None = None,
) -> Spec:
    """Profiles over depth: the first layer is at the top, as in the heatmap beside it."""
    names = labels(list(rows))
    form = ":.2~%" if quantity.scale == "share" else ":.4~g"
    data = []
    for index, profile in enumerate(profiles):
        values = np.asarray(profile.values, dtype=np.float64)
        if quantity.scale == "log":
            values = np.where(values > 0, values, np.nan)
        # Of several steps the later stand out: the last is what one looks for.
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": values,
                "y": names,
                "name": plotly_text(profile.name),
                "line": {"color": LINES[index % len(LINES)], "width": 1.8},
                "marker": {"size": 5},
                "hovertemplate": f"<b>%{{y}}</b>  {plotly_text(profile.name)}<br>%{{x{form}}} "
                f"{plotly_text(quantity.unit)}<extra></extra>",
            }
        )
    axis: dict[str, Any] = {"title": {"text": plotly_text(quantity.unit or quantity.title)}}
    if quantity.scale == "log":
        axis["type"] = "log"
        values = np.concatenate([np.ravel(profile.values) for profile in profiles] or [np.ones(1)])
        values = values[np.isfinite(values) & (values > 0)]
        if values.size:
            axis["tickvals"], axis["ticktext"] = log_ticks(
                float(values.min()), float(values.max()), 8
            )
    elif quantity.scale == "share":
        axis |= {"tickformat": ".0%", "rangemode": "tozero"}
    layout: dict[str, Any] = {
        "title": {
            "text": f"{plotly_text(quantity.title)} over depth<br>"
            f"<sup>{plotly_text(quantity.explain)}</sup>"
        },
        "height": height_of(len(rows)),
        "xaxis": axis,
        "yaxis": {
            "autorange": "reversed", "type": "category",
            "categoryorder": "array", "categoryarray": names,
        },
        "showlegend": len(data) > 1,
        "legend": {"orientation": "h", "x": 1.0, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
        "margin": {"t": 66},
    }  # fmt: skip
    if threshold is not None:
        layout["shapes"] = [
            {
                "type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": threshold,
                "x1": threshold, "line": {"width": 1.5, "dash": "dash", "color": GREY},
            }
        ]  # fmt: skip
    return {"data": data, "layout": layout}
