"""Effects of changes: sites over cells as colours around zero, pixels, or bars with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nethook.drawing.data import Floats, Picture, Spec
from nethook.drawing.palette import BLUE, DIVERGING, GREY
from nethook.drawing.pictures import mosaic
from nethook.drawing.training.heatmap import height_of
from nethook.text.escape import labels, plotly_text


def causes_spec(
    *,
    title: str,
    sites: Sequence[str],
    cells: Sequence[str],
    over: str,
    mean: Floats,
    low: Floats | None = None,
    high: Floats | None = None,
    floor: float = 0.0,
    grid: tuple[int, int] | None = None,
) -> Spec:
    """Effects (sites, cells); what lies within `floor` of zero is drawn as zero."""
    mean = np.where(np.abs(mean) <= floor, 0.0, mean)
    if grid is not None:
        pictures = [Picture(site, row.reshape(grid)) for site, row in zip(sites, mean, strict=True)]
        return mosaic(title, pictures, signed=True)
    if len(cells) == 1:
        return bars_spec(title, sites, mean[:, 0], _first(low), _first(high))
    return _colours(title, sites, cells, over, mean, low, high)


def _first(ends: Floats | None) -> Floats | None:
    return None if ends is None else ends[:, 0]


def _colours(
    title: str,
    sites: Sequence[str],
    cells: Sequence[str],
    over: str,
    mean: Floats,
    low: Floats | None,
    high: Floats | None,
) -> Spec:
    finite = np.abs(mean[np.isfinite(mean)])
    most = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    hover = "<b>%{y}</b>  %{customdata[0]}<br>%{z:.4~g}"
    shown = [np.broadcast_to(np.array([plotly_text(str(cell)) for cell in cells]), mean.shape)]
    if low is not None and high is not None and np.isfinite(low).any():
        hover += "  (%{customdata[1]:.4~g} … %{customdata[2]:.4~g})"
        shown += [low, high]
    data: dict[str, Any] = {
        "type": "heatmap",
        "z": mean,
        "x": list(range(len(cells))),
        "y": labels(list(sites)),
        "customdata": np.stack([part.astype(object) for part in shown], axis=-1).tolist(),
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "hovertemplate": f"{hover}<extra></extra>",
    }
    axis: dict[str, Any] = {"title": {"text": plotly_text(over)}, "showgrid": False}
    if len(cells) <= 64:
        axis["tickvals"] = list(range(len(cells)))
        axis["ticktext"] = labels([str(cell) for cell in cells])
    return {
        "data": [data],
        "layout": {
            "title": {"text": plotly_text(title)},
            "height": height_of(len(sites)) + 60,
            "coloraxis": {"cmin": -most, "cmax": most, "colorscale": DIVERGING},
            "xaxis": axis,
            "yaxis": {"autorange": "reversed", "type": "category", "showgrid": False},
        },
    }


def bars_spec(
    title: str, sites: Sequence[str], mean: Floats, low: Floats | None = None,
    high: Floats | None = None, unit: str = "effect",
) -> Spec:  # fmt: skip
    """Bars side by side, with intervals where there are some."""
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "x": mean,
        "y": labels(list(sites)),
        "marker": {"color": BLUE},
        "hovertemplate": "<b>%{y}</b><br>%{x:.4~g}<extra></extra>",
    }
    if low is not None and high is not None and np.isfinite(low).any():
        bars["error_x"] = {
            "type": "data", "symmetric": False, "array": np.nan_to_num(high - mean),
            "arrayminus": np.nan_to_num(mean - low), "color": GREY, "thickness": 1,
        }  # fmt: skip
    return {
        "data": [bars],
        "layout": {
            "title": {"text": plotly_text(title)},
            "height": height_of(len(sites)) + 60,
            "xaxis": {"title": {"text": plotly_text(unit)}, "zeroline": True},
            "yaxis": {"autorange": "reversed", "type": "category", "showgrid": False},
        },
    }
