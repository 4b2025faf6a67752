"""From a spec to what is shown: a Plotly figure, a still picture, or JSON for a page.

A page gets arrays as base64 of their bytes, and the cells of heatmaps as 8-bit codes with their
scale: code 0 is exactly the least, 252 exactly the greatest, in between 1/252 of the range.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Cells, Spec
from nethook.drawing.palette import ON_DARK, THEMES, faint, template
from nethook.drawing.stills.still import WIDTH, still
from nethook.errors import MissingLibraryError, OptionError

HEIGHT: Final = 300
"""Pixels of a figure that does not say how high it is."""

TOP: Final = 252  # the code of the greatest
INFINITE: Final = 253
ZERO: Final = 254  # of a logarithmic scale
MISSING: Final = 255

_COLOUR_KEYS: Final = ("color", "fillcolor", "zerolinecolor")
_SPAN: Final = re.compile(r'style="color:(#[0-9A-Fa-f]{6})"')


def figure(spec: Spec, theme: str = "light") -> Any:
    """The Plotly figure of a spec, with full numbers."""
    if theme not in THEMES:
        raise OptionError(f"`theme` must be one of {', '.join(THEMES)}; got {theme!r}.")
    try:
        from nethook.drawing.rendering.plotly_figure import Figure
    except ImportError:
        raise MissingLibraryError(
            "figures are made with plotly, which is not installed: pip install 'nethook[ui]'"
        ) from None
    data = [_with_numbers(trace) for trace in spec["data"]]
    layout = {**spec["layout"], "template": template(theme)}
    return Figure(themed({"data": data, "layout": layout}, theme))


def picture(spec: Spec, theme: str = "light", width: int = WIDTH) -> str:
    """A still picture of a spec, as SVG: all that can be seen without a pointer."""
    data = [_with_numbers(trace) for trace in spec["data"]]
    layout = {"height": HEIGHT, **spec["layout"], "template": template(theme)}
    return still(themed({"data": data, "layout": layout}, theme), width)


def themed(value: Any, theme: str, key: str = "") -> Any:
    """A spec in the colours of a theme. Only colours are touched: texts of others are not."""
    if theme == "light":
        return value
    if isinstance(value, dict):
        return {
            name: entry if name == "template" else themed(entry, theme, name)
            for name, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return [themed(entry, theme, key) for entry in value]
    if isinstance(value, str):
        if key in _COLOUR_KEYS:
            return _on_dark(value)
        if key == "text":  # only our own captions can have a tag: texts of others are escaped
            return _SPAN.sub(lambda match: f'style="color:{_on_dark(match[1])}"', value)
    return value


def dark_colours() -> dict[str, str]:
    """Colour, or beginning of a transparent one -> what it is on a dark background."""
    return {**ON_DARK, **{_rgb(light): _rgb(dark) for light, dark in ON_DARK.items()}}


def _on_dark(colour: str) -> str:
    begin = colour.rpartition(",")[0]
    on_dark = dark_colours()
    return on_dark.get(colour) or (
        on_dark[begin] + colour[len(begin) :] if begin in on_dark else colour
    )


def _rgb(colour: str) -> str:
    return faint(colour, 1).rpartition(",")[0]


def payload(spec: Spec) -> dict[str, Any]:
    """A spec as plain data for JSON; the page puts the template in."""
    encoded: dict[str, Any] = _encoded({"data": spec["data"], "layout": spec["layout"]})
    return encoded


def _with_numbers(trace: dict[str, Any]) -> dict[str, Any]:
    if "cells" not in trace:
        return trace
    cells: Cells = trace["cells"]
    rest = {name: value for name, value in trace.items() if name != "cells"}
    return {**rest, "z": cells.colours(), "customdata": np.moveaxis(cells.planes, 0, -1)}


def _encoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _encoded(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(entry) for entry in value]
    if isinstance(value, Cells):
        return encode_cells(value)
    if isinstance(value, np.ndarray):
        return encode_array(value)
    if isinstance(value, np.generic):
        return value.item()
    return value


def encode_array(array: np.ndarray[Any, Any]) -> Any:
    """An array as plotly.js takes it: type, base64 of its bytes, shape."""
    if array.dtype.kind in "OUSb" or array.size < 16:
        return [_encoded(entry) for entry in array.tolist()]
    if array.dtype.kind in "iu":
        fits = np.abs(array).max() < 1 << 31
        array = array.astype("<i4" if fits else "<f8")
    else:
        array = array.astype("<f4" if array.ndim > 1 or _float_is_enough(array) else "<f8")
    encoded = {"dtype": array.dtype.str[1:], "bdata": base64.b64encode(array.tobytes()).decode()}
    if array.ndim > 1:
        encoded["shape"] = ", ".join(str(length) for length in array.shape)
    return encoded


def encode_cells(cells: Cells) -> dict[str, Any]:
    """Cells as 8-bit codes, with what they mean."""
    low, high = cells.ends()
    codes = encode_codes(cells, low, high)
    return {
        "codes": base64.b64encode(codes.tobytes()).decode(),
        "shape": list(codes.shape),
        "low": low,
        "high": high,
        "log": cells.log,
    }


def encode_codes(cells: Cells, low: float, high: float) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The codes of all planes."""
    values = cells.planes
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.log10(values) if cells.log else values
        parts = (scaled - low) / ((high - low) or 1.0) * TOP
    codes = np.full(values.shape, MISSING, dtype=np.uint8)
    there = np.isfinite(scaled)
    codes[there] = np.clip(np.rint(parts[there]), 0, TOP).astype(np.uint8)
    codes[np.isposinf(values)] = INFINITE
    if cells.log:
        codes[values == 0] = ZERO
    return codes


def _float_is_enough(array: np.ndarray[Any, Any]) -> bool:
    """Whether float32 tells all numbers apart: steps need all digits, a loss does not."""
    whole = np.isfinite(array).all() and (array == np.rint(array)).all()
    return not whole or bool(np.abs(array).max() < 1 << 24)
