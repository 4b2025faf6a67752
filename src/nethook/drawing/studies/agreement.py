"""Estimates against what was measured: points about a diagonal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import GREY, LINES
from nethook.text.escape import plotly_text


def agreement(
    names: Sequence[str], exact: Floats, estimated: Floats, *, first: int | None = None
) -> Spec:
    """A point per name; the `first` ones were chosen for their estimate, the others at random."""
    count = len(names) if first is None else first
    both = np.concatenate([np.asarray(exact, float), np.asarray(estimated, float), [0.0]])
    low, high = float(both.min()), float(both.max())
    groups = (("largest estimates", slice(0, count)), ("random sample", slice(count, None)))
    data = [
        {
            "type": "scatter", "mode": "lines", "x": [low, high], "y": [low, high],
            "line": {"color": GREY, "width": 1, "dash": "dot"}, "hoverinfo": "skip",
            "showlegend": False,
        },
        *(
            {
                "type": "scatter", "mode": "markers", "name": label,
                "x": np.asarray(exact, float)[part], "y": np.asarray(estimated, float)[part],
                "text": [plotly_text(name) for name in names[part]],
                "marker": {"color": LINES[index], "size": 8},
                "hovertemplate": "%{text}<br>exact %{x:.4~g}, estimated %{y:.4~g}<extra></extra>",
            }
            for index, (label, part) in enumerate(groups)
            if len(names[part])
        ),
    ]  # fmt: skip
    layout = {
        "title": {"text": "Estimated and exact effects"},
        "height": 480,
        "xaxis": {"title": {"text": "exact effect"}},
        "yaxis": {"title": {"text": "estimated effect"}},
    }
    return {"data": data, "layout": layout}
