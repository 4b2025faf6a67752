"""A figure as a still picture: SVG without a script, for viewers that run none.

    still({"data": [...], "layout": {...}})

Plotly draws in a browser. A notebook on a code host, a page of nbconvert or a mail shows what is in
the file, so a figure brings this picture along. It draws what figures of this room use: lines,
markers, bands, bars, heatmaps, pictures, marks and captions; nothing that needs a pointer.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from nethook.drawing.palette import FONT, GREY, LINES
from nethook.drawing.stills.axes import Axis, array_of, axes_of
from nethook.drawing.stills.pixels import coloured, data_uri
from nethook.text.numbers import number

WIDTH: Final = 900
"""Pixels."""
_DASHES: Final = {"dot": "2 3", "dash": "6 4", "dashdot": "6 3 2 3"}
_TAG: Final = re.compile(r"<[^>]*>")
# A tag (its name, and the colour of a span), and the words up to the next one.
_PARTS: Final = re.compile(r'(?:<(/?\w+)(?: style="color:(#[0-9A-Fa-f]{6})")?[^>]*>|^)([^<]*)')
_LIGHT: Final = {"l": 60, "r": 20, "t": 46, "b": 44}
_LONGEST: Final = 150  # pixels of names of rows


def still(figure: Mapping[str, Any], width: int = WIDTH) -> str:
    """The picture of a figure, as its `to_plotly_json` has it."""
    return "".join(_Picture(figure, width).parts())


class _Picture:
    """The frame of a figure in pixels, and what is drawn in it."""

    def __init__(self, figure: Mapping[str, Any], width: int) -> None:
        self.layout: Mapping[str, Any] = figure.get("layout") or {}
        look = (self.layout.get("template") or {}).get("layout") or {}
        self.paper = look.get("paper_bgcolor", "#ffffff")
        self.ink = (look.get("font") or {}).get("color", "#1f2933")
        self.grid = (look.get("xaxis") or {}).get("gridcolor", "#e7eaef")
        self.soft = ((look.get("xaxis") or {}).get("tickfont") or {}).get("color", "#5b6673")
        self.data = [trace for trace in figure.get("data") or () if trace.get("visible", True)]
        self.width, self.height = width, int(self.layout.get("height") or 450)
        margin = {**_LIGHT, **{k: v for k, v in (self.layout.get("margin") or {}).items() if v}}
        bar = 70 if self.layout.get("coloraxis") else 0
        self.left = margin["l"]
        self.right = width - margin["r"] - bar
        self.top, self.bottom = margin["t"], self.height - margin["b"]
        self.axes = axes_of(self.layout, self.data)
        rows = [name for axis in self.axes.values() if axis.letter == "y" for name in axis.names]
        if rows:  # their names need room
            self.left = max(self.left, min(_LONGEST, 8 + 6 * max(map(len, map(_plain, rows)))))
        for axis in self.axes.values():
            ends = (self.left, self.right) if axis.letter == "x" else (self.bottom, self.top)
            axis.place(*ends)

    def parts(self) -> Iterator[str]:
        """The picture, from its background to what lies on top."""
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" style="max-width:100%;height:auto" font-family="{_text(FONT)}" '
            f'font-size="12" role="img" aria-label="{_text(self._said())}">'
            f'<rect width="100%" height="100%" fill="{self.paper}"/>'
        )
        for axis in self.axes.values():
            yield from self._axis(axis)
        for index, trace in enumerate(self.data):
            yield from self._trace(trace, index)
        for shape in self.layout.get("shapes") or ():
            yield self._shape(shape)
        for note in self.layout.get("annotations") or ():
            yield self._note(note)
        yield from self._title()
        yield from self._legend()
        yield from self._colour_bar()
        yield "</svg>"

    def _said(self) -> str:
        """What the picture is, in words, for those who do not see it."""
        title = _plain(str((self.layout.get("title") or {}).get("text") or "").partition("<br")[0])
        names = [
            _plain(str(note.get("text") or "")) for note in self.layout.get("annotations") or ()
        ]
        return title or next(filter(None, names), "figure")

    def _pair(self, trace: Mapping[str, Any]) -> tuple[Axis, Axis]:
        return self.axes[trace.get("xaxis") or "x"], self.axes[trace.get("yaxis") or "y"]

    # What surrounds the data

    def _axis(self, axis: Axis) -> Iterator[str]:
        if not axis.visible:
            return
        across = self.axes.get(axis.anchor)
        for place, said in axis.ticks():
            at = axis.at(place)
            if axis.letter == "x":
                low = self.bottom if across is None else across.start
                yield _words(at, low + 16, said, self.soft, "middle", 11)
                if axis.has_grid:
                    yield _line(at, self.top, at, self.bottom, self.grid)
            else:
                most = int(_LONGEST / 6)
                short = said if len(said) <= most else f"{said[: most - 1]}…"
                yield _words(self.left - 6, at + 4, short, self.soft, "end", 11)
                if axis.has_grid:
                    yield _line(self.left, at, self.right, at, self.grid)
        if axis.title and axis.letter == "x":
            low = self.bottom if across is None else across.start
            title = _plain(axis.title)
            yield _words((axis.start + axis.end) / 2, low + 34, title, self.soft, "middle")
        elif axis.title and not axis.names:
            middle = (axis.start + axis.end) / 2
            turned = f' transform="rotate(-90 14 {middle:.1f})"'
            yield _words(14, middle, _plain(axis.title), self.soft, "middle", more=turned)

    def _title(self) -> Iterator[str]:
        title = self.layout.get("title") or {}
        lines = re.split(r"<br\s*/?>", str(title.get("text") or ""))
        for row, text in enumerate(line for line in lines if line):
            colour, size = (self.soft, 11) if row else (self.ink, 15)
            yield _words(12, 20 + 17 * row, _plain(text), colour, "start", size)

    def _legend(self) -> Iterator[str]:
        named = [
            (index, trace)
            for index, trace in enumerate(self.data)
            if trace.get("name") and _is_shown(trace)
        ]
        if self.layout.get("showlegend") is not True or len(named) < 2:
            return
        right = self.right
        for index, trace in reversed(named[:8]):
            name = _plain(str(trace["name"]))
            right -= 7 * len(name) + 24
            colour = _colour(trace, index)
            yield _line(right, self.top - 10, right + 14, self.top - 10, colour, 2.5)
            yield _words(right + 18, self.top - 6, name, self.ink, "start", 11)

    def _colour_bar(self) -> Iterator[str]:
        axis = self.layout.get("coloraxis")
        if not axis:
            return
        low, high = float(axis.get("cmin", 0)), float(axis.get("cmax", 1))
        steps = np.linspace(high, low, 64)[:, None]
        pixels = coloured(steps, axis["colorscale"], low, high)
        left = self.right + 12
        yield _image(left, self.top, 12, self.bottom - self.top, pixels)
        bar = axis.get("colorbar") or {}
        places = array_of(bar.get("tickvals", [low, high])).astype(float)
        said = bar.get("ticktext") or [number(float(place)) for place in places]
        for place, text in zip(places, said, strict=False):
            if low <= place <= high and high > low:
                at = self.bottom - (place - low) / (high - low) * (self.bottom - self.top)
                yield _words(left + 16, at + 4, _plain(str(text)), self.soft, "start", 10)

    # The data

    def _trace(self, trace: Mapping[str, Any], index: int) -> Iterator[str]:
        kind = trace.get("type", "scatter")
        if kind in ("scatter", "scattergl"):
            yield from self._scatter(trace, index)
        elif kind == "bar":
            yield from self._bars(trace, index)
        elif kind in ("heatmap", "image"):
            yield from self._cells(trace)

    def _scatter(self, trace: Mapping[str, Any], index: int) -> Iterator[str]:
        x_axis, y_axis = self._pair(trace)
        x, y = x_axis.pixels(trace.get("x")), y_axis.pixels(trace.get("y"))
        mode, colour = trace.get("mode", "lines"), _colour(trace, index)
        line = trace.get("line") or {}
        if line.get("shape") in ("hv", "vh") and len(x) > 1:
            x, y = _stairs(x, y, line["shape"])
        if trace.get("fill") == "tozeroy":
            zero = y_axis.at(0.0) if not y_axis.log else y_axis.start
            yield _area(x, y, x[::-1], np.full(len(x), zero), trace.get("fillcolor", colour))
        elif trace.get("fill") == "tonexty" and index:
            before = self.data[index - 1]
            under = x_axis.pixels(before.get("x"))[::-1], y_axis.pixels(before.get("y"))[::-1]
            yield _area(x, y, *under, trace.get("fillcolor", colour))
        if "lines" in mode and line.get("width", 1.8):
            yield _path(x, y, colour, line.get("width", 1.8), line.get("dash", ""))
        if "markers" in mode:
            marker = trace.get("marker") or {}
            colours = marker.get("color")
            sizes = np.broadcast_to(array_of(marker.get("size") or 5).astype(float), x.shape)
            for place, (across, down) in enumerate(zip(x, y, strict=True)):
                if np.isfinite(across) and np.isfinite(down):
                    own = colours[place] if isinstance(colours, list | tuple) else colours
                    radius = float(sizes[place]) / 2
                    yield (
                        f'<circle cx="{across:.1f}" cy="{down:.1f}" r="{radius:.1f}" '
                        f'fill="{_text(own or colour)}"/>'
                    )
        if "text" in mode:
            said = trace.get("texttemplate") or trace.get("text") or []
            texts = [said] * len(x) if isinstance(said, str) else list(said)
            right = "right" in str(trace.get("textposition", ""))
            for across, down, text in zip(x, y, texts, strict=False):
                side = "start" if right else "middle"
                yield _words(across, down + 4, _plain(str(text)), self.ink, side, 11)

    def _bars(self, trace: Mapping[str, Any], index: int) -> Iterator[str]:
        x_axis, y_axis = self._pair(trace)
        flat = trace.get("orientation") == "h"
        along, across = (x_axis, y_axis) if flat else (y_axis, x_axis)
        lengths = array_of(trace.get("x" if flat else "y")).astype(float)
        places = across.pixels(trace.get("y" if flat else "x"))
        base = float(trace.get("base") or 0) if np.isscalar(trace.get("base") or 0) else 0.0
        gaps = np.abs(np.diff(np.sort(places)))
        wide = 0.8 * float(gaps[gaps > 0].min()) if (gaps > 0).any() else 12.0
        bars = [each for each in self.data if each.get("type") == "bar"]
        if self.layout.get("barmode") == "group" and len(bars) > 1:
            wide /= len(bars)
            places = places + wide * (bars.index(trace) - (len(bars) - 1) / 2)
        for place, length in zip(places, lengths, strict=True):
            low, high = sorted((along.at(base), along.at(base + length)))
            if not (np.isfinite(low) and np.isfinite(high) and np.isfinite(place)):
                continue
            start = place - wide / 2
            colour = _colour(trace, index)
            if flat:
                yield _rect(low, start, high - low, wide, colour)
            else:
                yield _rect(start, low, wide, high - low, colour)
        yield from self._intervals(trace, along, places, base + lengths, flat=flat)

    def _intervals(
        self, trace: Mapping[str, Any], along: Axis, places: Any, ends: Any, *, flat: bool
    ) -> Iterator[str]:
        """A line from the low to the high end of each bar's interval."""
        error = trace.get("error_x" if flat else "error_y") or {}
        if error.get("array") is None:
            return
        above = array_of(error["array"]).astype(float)
        below = array_of(error.get("arrayminus", error["array"])).astype(float)
        for place, end, up, down in zip(places, ends, above, below, strict=True):
            low, high = along.at(end - down), along.at(end + up)
            x0, y0, x1, y1 = (low, place, high, place) if flat else (place, low, place, high)
            if up > 0 or down > 0:
                yield _line(x0, y0, x1, y1, error.get("color", GREY), 1.4)

    def _cells(self, trace: Mapping[str, Any]) -> Iterator[str]:
        x_axis, y_axis = self._pair(trace)
        if trace.get("source"):  # a picture as a file, which fills its axes
            left, right = sorted((x_axis.start, x_axis.end))
            first, last = sorted((y_axis.start, y_axis.end))
            yield _placed(left, first, right - left, last - first, str(trace["source"]))
            return
        values = array_of(trace.get("z"))
        if values.ndim < 2 or not values.size:
            return
        if trace.get("type") == "image":
            pixels = np.asarray(values, dtype=float)
            pixels[..., 3:] *= 255  # opacity is a fraction in Plotly
            pixels = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
        else:
            axis = self.layout.get("coloraxis") if trace.get("coloraxis") else trace
            scale = (axis or {}).get("colorscale") or [[0, "#000000"], [1, "#ffffff"]]
            ends = [float(end) for end in (np.nanmin(values), np.nanmax(values))]
            low = float((axis or {}).get("cmin", (axis or {}).get("zmin", ends[0])))
            high = float((axis or {}).get("cmax", (axis or {}).get("zmax", ends[1])))
            pixels = coloured(values.astype(float), scale, low, high)
        left, right = x_axis.span(trace.get("x"), values.shape[1])
        first, last = y_axis.span(trace.get("y"), values.shape[0])
        if right < left:
            left, right, pixels = right, left, pixels[:, ::-1]
        if last < first:  # the first row is at the bottom
            first, last, pixels = last, first, pixels[::-1]
        yield _image(left, first, right - left, last - first, pixels, trace.get("opacity"))

    def _shape(self, shape: Mapping[str, Any]) -> str:
        x0, x1 = (self._place(shape, "x", shape.get(name, 0)) for name in ("x0", "x1"))
        y0, y1 = (self._place(shape, "y", shape.get(name, 0)) for name in ("y0", "y1"))
        line = shape.get("line") or {}
        if shape.get("type") == "line":
            dash = line.get("dash", "")
            return _line(x0, y0, x1, y1, line.get("color", GREY), line.get("width", 1), dash)
        box = (min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0))
        return _rect(*box, shape.get("fillcolor", "none"))

    def _place(self, about: Mapping[str, Any], letter: str, value: Any) -> float:
        """Where something is that refers to the paper or to an axis."""
        reference = str(about.get(f"{letter}ref") or letter)
        if reference == "paper":
            ends = (self.left, self.right) if letter == "x" else (self.bottom, self.top)
            return float(ends[0] + float(value) * (ends[1] - ends[0]))
        axis = self.axes.get(reference.removesuffix(" domain"))
        return 0.0 if axis is None else axis.at(value)

    def _note(self, note: Mapping[str, Any]) -> str:
        x = self._place(note, "x", note.get("x", 0)) + float(note.get("xshift", 0))
        axis = self.axes.get(str(note.get("yref")))
        if axis is not None and axis.log:  # a note's place is a logarithm there
            y = axis.at_scaled(float(note.get("y", 0)))
        else:
            y = self._place(note, "y", note.get("y", 0))
        down = {"bottom": -4.0, "top": 12.0}.get(str(note.get("yanchor")), 4.0)
        side = {"left": "start", "right": "end"}.get(str(note.get("xanchor")), "middle")
        font = note.get("font") or {}
        size, colour = font.get("size", 11), font.get("color", self.ink)
        rich = str(note.get("text") or "")
        text = _plain(rich)
        if side != "end" and x + 0.55 * size * len(text) / (1 + (side == "middle")) > self.width:
            x, side = self.width - 2.0, "end"  # it would be cut off
        return _words(
            x, y + down, text, colour, side, size, parts=_parts(rich) if "<" in rich else ""
        )


def _is_shown(trace: Mapping[str, Any]) -> bool:
    return trace.get("showlegend") is not False


def _colour(trace: Mapping[str, Any], index: int) -> str:
    for part in ("line", "marker"):
        colour = (trace.get(part) or {}).get("color")
        if isinstance(colour, str):
            return colour
    return LINES[index % len(LINES)]


def _plain(text: str) -> str:
    """What Plotly would show of a text with its tags and entities."""
    return html.unescape(_TAG.sub("", text))


def _parts(rich: str) -> str:
    """A caption as parts of a text: bold ones, and names in the colours of their lines."""
    made, bold, colour = [], "", ""
    for tag, colours, words in _PARTS.findall(rich):
        if tag in ("b", "/b"):
            bold = ' font-weight="600"' if tag == "b" else ""
        elif tag:
            colour = f' fill="{colours}"' if colours else ""
        # Several spaces would be one.
        shown = _text(html.unescape(words)).replace("  ", "\u00a0\u00a0")
        if shown:
            made.append(f"<tspan{bold}{colour}>{shown}</tspan>")
    return "".join(made)


def _text(text: object) -> str:
    return html.escape(str(text), quote=True)


def _words(
    x: float, y: float, text: str, colour: str, side: str, size: float = 12, more: str = "",
    parts: str = "",
) -> str:  # fmt: skip
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{_text(colour)}" text-anchor="{side}" '
        f'font-size="{size:g}"{more}>{parts or _text(text)}</text>'
        if np.isfinite(x) and np.isfinite(y)
        else ""
    )


def _line(
    x0: float, y0: float, x1: float, y1: float, colour: str, width: float = 1, dash: str = ""
) -> str:
    return _path(np.array([x0, x1]), np.array([y0, y1]), colour, width, dash)


def _path(x: Any, y: Any, colour: str, width: float, dash: str) -> str:
    """A line with gaps where a number is missing."""
    words: list[str] = []
    pen = "M"
    for across, down in zip(x, y, strict=True):
        if np.isfinite(across) and np.isfinite(down):
            words.append(f"{pen}{across:.1f},{down:.1f}")
            pen = "L"
        else:
            pen = "M"
    dashes = f' stroke-dasharray="{_DASHES[dash]}"' if dash in _DASHES else ""
    return (
        f'<path d="{" ".join(words)}" fill="none" stroke="{_text(colour)}" '
        f'stroke-width="{width:g}"{dashes}/>'
    )


def _area(x: Any, y: Any, back_x: Any, back_y: Any, colour: str) -> str:
    places = [*zip(x, y, strict=True), *zip(back_x, back_y, strict=True)]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places if np.isfinite(a) and np.isfinite(b))
    return f'<polygon points="{points}" fill="{_text(colour)}"/>'


def _stairs(x: Any, y: Any, shape: str) -> tuple[Any, Any]:
    twice_x, twice_y = np.repeat(x, 2), np.repeat(y, 2)
    return (twice_x[1:], twice_y[:-1]) if shape == "hv" else (twice_x[:-1], twice_y[1:])


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{_text(colour)}"/>'
    )


def _image(
    left: float, top: float, width: float, height: float, pixels: Any, opacity: Any = None
) -> str:
    return _placed(left, top, width, height, data_uri(pixels), opacity)


def _placed(
    left: float, top: float, width: float, height: float, uri: str, opacity: Any = None
) -> str:
    faint = "" if opacity is None else f' opacity="{float(opacity):g}"'
    return (
        f'<image x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"{faint} '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" href="{_text(uri)}"/>'
    )
