"""Maps over pictures: a slider sets the map's share, and the raw map stands beside it.

Where the map is near zero, the picture is seen through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import DIVERGING, DIVERGING_OVER
from nethook.drawing.stills.pixels import data_uri
from nethook.text.escape import plotly_text, shorten

_WIDE: Final = 360  # pixels of a picture
_GAP: Final = 34  # between two rows
_SHARE: Final = 0.8  # of the map, before the slider is moved
_ABOVE, _BELOW = 64, 84


def overlay_spec(
    title: str, pictures: Sequence[Floats], maps: Sequence[Floats], names: Sequence[str]
) -> Spec:
    """Pictures (channels, height, width) of any range, and maps (height, width) of any size."""
    tall = max(_WIDE * picture.shape[1] / picture.shape[2] for picture in pictures)
    whole = len(pictures) * (tall + _GAP)
    most = max((float(np.nanmax(np.abs(each))) for each in maps if each.size), default=0.0) or 1.0
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "title": {"text": plotly_text(title)},
        "height": int(whole) + _ABOVE + _BELOW,
        "margin": {"l": 10, "r": 10, "t": _ABOVE, "b": _BELOW},
        "coloraxis": {
            "cmin": -most, "cmax": most, "colorscale": DIVERGING,
            "colorbar": {"tickformat": ".3~g"},
        },
        "annotations": [],
    }  # fmt: skip
    over: list[int] = []
    for number, (picture, one, name) in enumerate(zip(pictures, maps, names, strict=True)):
        top = 1 - number * (tall + _GAP) / whole
        low = top - tall / whole
        height, width = picture.shape[1:]
        for side, domain in enumerate(([0.0, 0.47], [0.53, 1.0])):
            axis = 2 * number + side + 1
            suffix = "" if axis == 1 else str(axis)
            layout[f"xaxis{suffix}"] = {
                "visible": False, "domain": domain, "anchor": f"y{suffix}",
                "range": [-0.5, width - 0.5], "constrain": "domain",
            }  # fmt: skip
            layout[f"yaxis{suffix}"] = {
                "visible": False, "domain": [max(low, 0.0), top], "anchor": f"x{suffix}",
                "range": [height - 0.5, -0.5], "scaleanchor": f"x{suffix}", "constrain": "domain",
            }  # fmt: skip
            where = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
            if side == 0:
                data.append(_image(picture) | where)
                over.append(len(data))
            colours = _seen_through(most) if side == 0 else {"coloraxis": "coloraxis"}
            data.append(_map(one, height, width) | colours | where)
            layout["annotations"].append({
                "text": plotly_text(shorten(name if side == 0 else "the map alone", 40)),
                "showarrow": False, "xref": "paper", "yref": "paper", "x": domain[0],
                "xanchor": "left", "y": top, "yanchor": "bottom", "font": {"size": 11},
            })  # fmt: skip
    layout["sliders"] = [_slider(over)]
    return {"data": data, "layout": layout}


def _image(picture: Floats) -> dict[str, Any]:
    low, high = float(np.nanmin(picture)), float(np.nanmax(picture))
    scaled = np.nan_to_num((picture - low) / ((high - low) or 1.0))
    shown = scaled if len(scaled) == 3 else np.repeat(scaled.mean(0, keepdims=True), 3, 0)
    pixels = np.empty((*picture.shape[1:], 4), dtype=np.uint8)
    pixels[..., :3] = np.rint(255 * np.moveaxis(shown, 0, -1))
    pixels[..., 3] = 255
    return {"type": "image", "source": data_uri(pixels), "hoverinfo": "skip"}


def _seen_through(most: float) -> dict[str, Any]:
    """The colours of a map over a picture."""
    return {
        "colorscale": DIVERGING_OVER, "zmin": -most, "zmax": most, "showscale": False,
        "opacity": _SHARE,
    }  # fmt: skip


def _map(one: Floats, height: int, width: int) -> dict[str, Any]:
    """A map as large as the picture, its cells as large as they are."""
    down, across = height / one.shape[0], width / one.shape[1]
    rows, columns = np.indices(one.shape)
    return {
        "type": "heatmap",
        "z": np.asarray(one, dtype=np.float64),
        "x": (np.arange(one.shape[1]) + 0.5) * across - 0.5,
        "y": (np.arange(one.shape[0]) + 0.5) * down - 0.5,
        "customdata": np.stack([rows, columns], axis=-1),
        "hovertemplate": "row %{customdata[0]}, column %{customdata[1]}: %{z:.4~g}<extra></extra>",
    }


def _slider(over: list[int]) -> dict[str, Any]:
    shares = [share / 10 for share in range(11)]
    return {
        "active": shares.index(_SHARE),
        "currentvalue": {"prefix": "share of the map: "},
        "len": 0.47,
        "x": 0.0,
        "y": 0.0,
        "pad": {"t": 18},
        "steps": [
            {"label": f"{share:.0%}", "method": "restyle", "args": [{"opacity": share}, over]}
            for share in shares
        ],
    }
