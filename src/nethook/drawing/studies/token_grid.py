"""A grid of layers by tokens: a number as colour in each cell, and a text in it if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import DIVERGING, SEQUENTIAL
from nethook.text.escape import labels, plotly_text, shorten

_WIDEST: Final = 1200
_TALLEST: Final = 1100


def token_grid(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Floats,
    *,
    texts: Sequence[Sequence[str]] | None = None,
    hover: Sequence[Sequence[str]] | None = None,
    signed: bool = False,
    unit: str = "",
    axes: tuple[str, str] = ("layer", "token"),
) -> Spec:
    """Values (rows, columns) as colours; the first row is at the bottom, as layers are drawn.

    `texts` stand in the cells, `hover` is added to what is shown on hovering. Zero is the middle of
    the colours where `signed`.
    """
    array = np.asarray(values, dtype=np.float64)
    finite = array[np.isfinite(array)]
    high = float(np.abs(finite).max()) if finite.size else 1.0
    high = high or 1.0
    more = [["" for _ in columns] for _ in rows] if hover is None else hover
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": array,
        "x": list(range(len(columns))),
        "y": labels(list(rows)),
        "customdata": [[plotly_text(cell) for cell in line] for line in more],
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": f"%{{y}}, {plotly_text(axes[1])} %{{x}}: %{{z:.4~g}} {plotly_text(unit)}"
        "<br>%{customdata}<extra></extra>",
    }
    if texts is not None:
        trace["text"] = [[plotly_text(shorten(cell, 12)) for cell in line] for line in texts]
        trace["texttemplate"] = "%{text}"
    layout = {
        "title": {"text": plotly_text(title)},
        "height": int(min(_TALLEST, 140 + 26 * len(rows))),
        "width": int(min(_WIDEST, 260 + (64 if texts is not None else 40) * len(columns))),
        "coloraxis": {
            "cmin": -high if signed else 0.0,
            "cmax": high,
            "colorscale": DIVERGING if signed else SEQUENTIAL,
            "colorbar": {"title": {"text": plotly_text(unit)}},
        },
        "xaxis": {
            "title": {"text": plotly_text(axes[1])},
            "tickmode": "array",
            "tickvals": list(range(len(columns))),
            "ticktext": [plotly_text(shorten(name, 14)) for name in columns],
            "showgrid": False,
        },
        "yaxis": {"title": {"text": plotly_text(axes[0])}, "type": "category", "showgrid": False},
    }
    return {"data": [trace], "layout": layout}
