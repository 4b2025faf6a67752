"""Pictures side by side: channels of a layer, filters, attention, snapshots over training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Picture, Spec
from nethook.drawing.decimate import robust_range
from nethook.drawing.palette import DIVERGING, SEQUENTIAL
from nethook.text.escape import plotly_text, shorten

_WIDE: Final = 900  # pixels of a grid of pictures
_GAP: Final = 1  # pixels of data between two pictures
_CAPTION: Final = 20  # pixels above a picture, for its title, at the usual width
_LARGEST: Final = 48  # pixels that one pixel of data may have


def mosaic(
    title: str,
    pictures: Sequence[Picture],
    *,
    columns: int = 0,
    signed: bool = False,
    each: bool = False,
    range_of: tuple[float, float] | None = None,
    axes: tuple[str, str] = ("row", "column"),
) -> Spec:
    """Pictures of one size in a grid, on one scale of colours; with `each`, on one per picture."""
    height, width = pictures[0].pixels.shape
    columns = columns or _columns(len(pictures), height, width)
    rows = -(-len(pictures) // columns)
    gap = max(_GAP, round(0.06 * max(height, width)))
    wide = columns * (width + gap) - gap
    above = (
        _room_for_titles(rows, height, wide, gap) if any(each.title for each in pictures) else gap
    )
    tall = rows * (height + above) - above
    z = np.full((tall, wide), np.nan)
    shown = np.full((tall, wide, 4), np.nan)  # which picture, row, column, value
    for index, picture in enumerate(pictures):
        top, left = (index // columns) * (height + above), (index % columns) * (width + gap)
        cell = (slice(top, top + height), slice(left, left + width))
        pixels = np.asarray(picture.pixels, dtype=np.float64)
        z[cell] = _own_scale(pixels, signed=signed) if each else pixels
        shown[cell] = np.stack(
            [np.full((height, width), index), *np.indices((height, width)), pixels], axis=-1
        )
    low, high = range_of or (
        (-1.0 if signed else 0.0, 1.0) if each else _range(z, signed=signed)
    )  # fmt: skip
    shape = max(60, min(_WIDE, int(_WIDE * tall / wide), _LARGEST * tall))
    layout: dict[str, Any] = {
        "title": {"text": plotly_text(title)},
        "height": shape + 80,
        "coloraxis": {
            "cmin": low,
            "cmax": high,
            "colorscale": DIVERGING if signed else SEQUENTIAL,
            "showscale": not each,
            "colorbar": {"tickformat": ".3~g"},
        },
        "xaxis": {"visible": False, "constrain": "domain", "range": [-0.5, wide - 0.5]},
        "yaxis": {
            "visible": False,
            "range": [tall - 0.5, -above - 0.5],
            "scaleanchor": "x",
            "constrain": "domain",
        },
        "annotations": [
            {
                "text": plotly_text(shorten(picture.title, 24)),
                "showarrow": False,
                "x": (index % columns) * (width + gap) - 0.5,
                "xanchor": "left",
                "y": (index // columns) * (height + above) - 0.5,
                "yanchor": "bottom",
                "font": {"size": 10},
            }
            for index, picture in enumerate(pictures)
        ],
        "margin": {"l": 10, "r": 10, "t": 46, "b": 10},
    }
    trace = {
        "type": "heatmap",
        "z": z,
        "customdata": shown,
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "hovertemplate": f"{plotly_text(axes[0])} %{{customdata[1]}}, {plotly_text(axes[1])} "
        "%{customdata[2]}: %{customdata[3]:.4~g}<extra>picture %{customdata[0]}</extra>",
    }
    return {"data": [trace], "layout": layout}


def _room_for_titles(rows: int, height: int, wide: int, gap: int) -> int:
    """Pixels of data between two rows, so that a title fits in: they shrink with each row."""
    for room in range(gap, height + gap):
        tall = rows * (height + room)
        if room * min(_WIDE / wide, _WIDE / tall, _LARGEST) >= _CAPTION:
            return room
    return height + gap


def colour_mosaic(title: str, pictures: Sequence[Floats], columns: int = 0) -> Spec:
    """Pictures with three channels (3, height, width), each on its own scale, as colours."""
    _, height, width = pictures[0].shape
    columns = columns or _columns(len(pictures), height, width)
    rows = -(-len(pictures) // columns)
    gap = _GAP
    tall, wide = rows * (height + gap) - gap, columns * (width + gap) - gap
    pixels = np.zeros((tall, wide, 4))  # transparent between the pictures
    for index, picture in enumerate(pictures):
        top, left = (index // columns) * (height + gap), (index % columns) * (width + gap)
        low, high = float(np.nanmin(picture)), float(np.nanmax(picture))
        scaled = (np.moveaxis(np.asarray(picture), 0, -1) - low) / ((high - low) or 1.0)
        pixels[top : top + height, left : left + width, :3] = 255 * np.nan_to_num(scaled)
        pixels[top : top + height, left : left + width, 3] = 1.0
    trace = {
        "type": "image", "z": np.round(pixels, 3), "colormodel": "rgba", "hoverinfo": "skip",
    }  # fmt: skip
    layout = {
        "title": {"text": plotly_text(title)},
        "height": max(60, min(_WIDE, int(_WIDE * tall / wide), _LARGEST * tall)) + 80,
        "xaxis": {"visible": False},
        "yaxis": {"visible": False},
        "margin": {"l": 10, "r": 10, "t": 46, "b": 10},
    }
    return {"data": [trace], "layout": layout}


def maps(
    title: str, pictures: Sequence[Picture], rows: Sequence[str], columns: Sequence[str]
) -> Spec:
    """Pictures of weights between named things (attention): a small heatmap each, with names.

    Of several, a menu picks one, which then has the room of all.
    """
    across = min(len(pictures), 4)
    down = -(-len(pictures) // across)
    top = max((float(np.nanmax(picture.pixels)) for picture in pictures), default=1.0)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "title": {"text": plotly_text(title)},
        "height": 100 + down * max(180, int(_WIDE / across * 0.95)),
        "coloraxis": {"cmin": 0.0, "cmax": top or 1.0, "colorscale": SEQUENTIAL},
        "annotations": [],
        "margin": {"t": 66},
    }
    gap = 0.05
    wide = (1 - gap * (across - 1)) / across
    tall = (1 - 0.12 * (down - 1)) / down
    few = max(len(rows), len(columns)) <= 24
    names = [plotly_text(shorten(name, 16)) for name in rows]
    keys = [plotly_text(shorten(name, 16)) for name in columns]
    for index, picture in enumerate(pictures):
        number = index + 1
        left, upper = (index % across) * (wide + gap), 1 - (index // across) * (tall + 0.12)
        suffix = "" if number == 1 else str(number)
        height, width = picture.pixels.shape
        first = index % across == 0
        layout[f"xaxis{suffix}"] = {
            "domain": [left, left + wide], "anchor": f"y{suffix}", "tickangle": -60,
            "tickmode": "array", "tickvals": list(range(width)), "ticktext": keys,
            "showticklabels": few, "showgrid": False,
        }  # fmt: skip
        layout[f"yaxis{suffix}"] = {
            "domain": [max(0.0, upper - tall), upper], "anchor": f"x{suffix}",
            "tickmode": "array", "tickvals": list(range(height)), "ticktext": names,
            "showticklabels": few and first, "range": [height - 0.5, -0.5], "showgrid": False,
        }  # fmt: skip
        layout["annotations"].append(
            {
                "text": plotly_text(shorten(picture.title, 24)), "showarrow": False,
                "xref": "paper", "yref": "paper", "x": left, "xanchor": "left", "y": upper,
                "yanchor": "bottom",
            }
        )  # fmt: skip
        data.append(
            {
                "type": "heatmap", "z": np.asarray(picture.pixels, dtype=np.float64),
                "xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "coloraxis": "coloraxis",
                "text": [[f"{row} → {key}" for key in keys] for row in names],
                "hovertemplate": "%{text}: %{z:.3~f}<extra></extra>",
            }
        )  # fmt: skip
    if len(pictures) > 1:
        layout["updatemenus"] = [_picker(layout, [picture.title for picture in pictures])]
    return {"data": data, "layout": layout}


def _picker(layout: Spec, titles: Sequence[str]) -> Spec:
    """A menu of all pictures and each alone, whose axes then take the whole figure."""
    suffixes = ["" if number == 0 else str(number + 1) for number in range(len(titles))]
    every: dict[str, Any] = {}
    for number, suffix in enumerate(suffixes):
        note = layout["annotations"][number]
        every |= {f"annotations[{number}].{key}": note[key] for key in ("x", "y")}
        every[f"annotations[{number}].visible"] = True
        for axis in (f"xaxis{suffix}", f"yaxis{suffix}"):
            every |= {f"{axis}.{key}": layout[axis][key] for key in ("domain", "showticklabels")}
            every[f"{axis}.visible"] = True
    buttons = [{"label": "all", "method": "update", "args": [{"visible": True}, every]}]
    for number, title in enumerate(titles):
        alone: dict[str, Any] = {
            key: False for key in every if key.endswith(".visible") and not key.endswith("]")
        }
        own = suffixes[number]
        few = layout["xaxis"]["showticklabels"]
        alone |= {f"annotations[{number}].{key}": value for key, value in
                  (("visible", True), ("x", 0.0), ("y", 1.0))}  # fmt: skip
        for axis in (f"xaxis{own}", f"yaxis{own}"):
            alone |= {
                f"{axis}.visible": True, f"{axis}.domain": [0.0, 1.0],
                f"{axis}.showticklabels": few,
            }  # fmt: skip
        shown = [other == number for other in range(len(titles))]
        args = [{"visible": shown}, {**every, **alone}]
        buttons.append({"label": plotly_text(shorten(title, 24)), "method": "update", "args": args})
    return {
        "type": "dropdown", "buttons": buttons, "active": 0, "x": 1.0, "xanchor": "right",
        "y": 1.0, "yanchor": "bottom", "pad": {"b": 18}, "font": {"size": 11},
    }  # fmt: skip


def _columns(count: int, height: int, width: int) -> int:
    """So many columns that the grid is about twice as wide as it is high."""
    return max(1, min(count, round(math.sqrt(2.0 * count * height / max(1, width)))))


def _range(z: Floats, *, signed: bool) -> tuple[float, float]:
    low, high = robust_range(z, 0.005, 0.995)
    if signed:
        most = max(abs(low), abs(high)) or 1.0
        return -most, most
    return low, high


def _own_scale(pixels: Floats, *, signed: bool) -> Floats:
    low, high = _range(pixels, signed=signed)
    scaled: Floats = (pixels - low) / ((high - low) or 1.0)
    return 2 * scaled - 1 if signed else scaled
