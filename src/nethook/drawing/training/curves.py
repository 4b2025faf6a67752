"""Numbers over steps: panels above each other with one cursor, findings marked above them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Line, Mark, Panel, Spec
from nethook.drawing.decimate import POINTS, thin_line
from nethook.drawing.palette import GREY, LINES, SEVERITIES, faint
from nethook.text.escape import labels, plotly_text, shorten
from nethook.text.numbers import log_ticks, number, share

TALL: Final = 120
"""Pixels of a panel with tall=1."""
_CAPTION: Final = 26  # pixels above each panel, for its name
_ROOMY: Final = 100  # pixels of a panel from which it has room for more ticks
_STRIP: Final = 20  # pixels for the marks of findings
_BOTTOM: Final = 46  # pixels for the steps
_FEW_STEPS: Final = 9  # below which each has a tick, and nothing between them
_SMALL: Final = 2e-3  # below which numbers are read as powers of ten
_MOST_MARKS: Final = 40
_LETTER, _BESIDE = 6.6, 60  # pixels of a letter of a caption, and beside it
_TAG: Final = re.compile(r"<[^>]*>")
_MOST_LABELS: Final = 4  # marks of events that are named in the figure, and not only on hover


def curves(
    panels: Sequence[Panel],
    marks: Sequence[Mark] = (),
    title: str = "",
    *,
    height: int = 0,
    points: int = POINTS,
    tall: int = TALL,
) -> Spec:
    """Panels on one axis of steps; each line has at most `points` points."""
    total = sum(panel.tall for panel in panels) or 1.0
    top = 40 if title else 6
    extra = (_STRIP if marks else 0) + _CAPTION * len(panels)
    pixels = height or int(top + _BOTTOM + extra + tall * total)
    area = max(1.0, pixels - top - _BOTTOM)  # what fractions of the paper are of
    unit = max(10.0, area - extra) / total  # pixels of tall=1
    first, last = _ends(panels)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "height": pixels,
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "showlegend": False,
        "xaxis": {
            "title": {"text": "step"},
            "anchor": _axis("y", max(1, len(panels))),
            "showspikes": True,
            "spikemode": "across",
            "hoverformat": ",.0f",
            "unifiedhovertitle": {"text": "step %{x:,.0f}"},
            "tickformat": ",~f",
            "showgrid": False,
            "range": [first, last],
            **({"dtick": 1} if last - first < _FEW_STEPS else {}),
        },
        "shapes": [],
        "annotations": [],
        "margin": {"t": top, "b": _BOTTOM, "r": 14},
    }
    if title:
        layout["title"] = {"text": plotly_text(title)}
    down = 0.0  # pixels from the top of the area
    if marks:
        layout["yaxis20"] = {"domain": [1 - _STRIP / area, 1.0], "visible": False, "range": [-1, 1]}
        data.append(_mark_trace(marks))
        layout["shapes"] += [_mark_line(mark) for mark in marks[:_MOST_MARKS]]
        down += _STRIP
    for axis_number, panel in enumerate(panels, start=1):
        down += _CAPTION
        upper = 1 - down / area
        layout["annotations"].append(_caption(panel, upper))
        down += unit * panel.tall
        axis = _y_axis(panel, max(0.0, 1 - down / area), upper, int(unit * panel.tall))
        layout[_axis("yaxis", axis_number)] = axis
        data += _lines(panel, axis_number, points)
        if panel.threshold is not None:
            layout["shapes"].append(_threshold(panel, axis_number))
            layout["annotations"].append(_threshold_text(panel, axis_number))
    # What is narrower has the names of lines below: draw.js.
    layout["meta"] = {"captions": _widest(panels)}
    return {"data": data, "layout": layout}


def _widest(panels: Sequence[Panel]) -> int:
    """Pixels that the longest caption needs, about."""
    captions = [_TAG.sub("", html.unescape(_caption(panel, 1.0)["text"])) for panel in panels]
    return _BESIDE + int(_LETTER * max(map(len, captions), default=0))


def _ends(panels: Sequence[Panel]) -> tuple[float, float]:
    """The first and the last step of all lines."""
    steps = [np.asarray(line.step, dtype=np.float64) for panel in panels for line in panel.lines]
    there = [line_steps for line_steps in steps if line_steps.size]
    if not there:
        return 0.0, 1.0
    first, last = (
        min(float(line_steps.min()) for line_steps in there),
        max(float(line_steps.max()) for line_steps in there),
    )
    pad = 0.006 * (last - first) or 0.5
    return first - pad, last + pad


def _axis(name: str, axis_number: int) -> str:
    return name if axis_number == 1 else f"{name}{axis_number}"


def _y_axis(panel: Panel, bottom: float, top: float, pixels: int) -> dict[str, Any]:
    axis: dict[str, Any] = {"domain": [bottom, top], "nticks": 5, "hoverformat": ".4~g"}
    ticks = 4 if pixels >= _ROOMY else 2
    if panel.unit:
        axis["title"] = {"text": plotly_text(panel.unit)}
    if panel.scale == "log":
        axis["type"] = "log"
        low, high = _positive_ends(panel)
        axis["tickvals"], axis["ticktext"] = log_ticks(low, high, ticks)
        pad = 0.06 * (np.log10(high / low) or 1.0)
        axis["range"] = [float(np.log10(low) - pad), float(np.log10(high) + pad)]
    elif panel.scale == "linear" and (level := _level(panel)) is not None:
        axis["range"] = sorted([0.0, 2.0 * level]) if level else [-1.0, 1.0]
    elif panel.scale == "share":
        axis |= {"tickformat": ".0%", "hoverformat": ".2~%", "rangemode": "tozero"}
    return axis


def _level(panel: Panel) -> float | None:
    """The one value of a panel that has but one."""
    values = np.unique(
        np.concatenate([np.asarray(line.value) for line in panel.lines] or [np.zeros(0)])
    )
    values = values[np.isfinite(values)]
    return float(values[0]) if len(values) == 1 else None


def _positive_ends(panel: Panel) -> tuple[float, float]:
    """The least and the greatest positive number that a logarithmic panel has to show."""
    parts = [line.value for line in panel.lines]
    parts += [line.greatest for line in panel.lines if line.greatest is not None]
    parts += [line.least for line in panel.lines if line.least is not None]
    if panel.threshold is not None:
        parts.append(np.array([panel.threshold]))
    values = np.concatenate(
        [np.asarray(values, dtype=np.float64) for values in parts] or [np.ones(1)]
    )
    values = values[np.isfinite(values) & (values > 0)]
    return (float(values.min()), float(values.max())) if values.size else (0.1, 1.0)


def _caption(panel: Panel, top: float) -> dict[str, Any]:
    """The name of a panel, above it, with the names of its lines."""
    return {
        "text": f"<b>{plotly_text(shorten(panel.title))}</b>{_legend(panel)}",
        "xref": "paper", "yref": "paper", "x": 0.0, "y": top,
        "xshift": 6,  # beside the mark of the first step
        "xanchor": "left", "yanchor": "bottom", "showarrow": False,
        "hovertext": plotly_text(panel.explain), "font": {"size": 12},
    }  # fmt: skip


def _legend(panel: Panel) -> str:
    if len(panel.lines) < 2:
        return ""
    shown = [
        f'<span style="color:{_colour(line, index)}">{"┄" if line.dash else "━"} '
        f"{plotly_text(shorten(line.name, 32))}</span>"
        for index, line in enumerate(panel.lines[:6])
    ]
    more = f"   … {len(panel.lines) - 6} more" if len(panel.lines) > 6 else ""
    return "   " + "   ".join(shown) + more


def _colour(line: Line, index: int) -> str:
    return line.colour or LINES[index % len(LINES)]


def _lines(panel: Panel, axis_number: int, points: int) -> list[dict[str, Any]]:
    axis = _axis("y", axis_number)
    data: list[dict[str, Any]] = []
    names = labels([line.name for line in panel.lines], 32)
    for index, full in enumerate(panel.lines):
        line, colour = thin_line(full, points), _colour(full, index)
        read = f"{_read_as(panel, full)} %{{y{_form(panel, full)}}}<extra></extra>"
        step = np.asarray(line.step)
        common = {"type": "scatter", "x": step, "yaxis": axis, "xaxis": "x"}
        if line.least is not None and line.greatest is not None:
            edge = {
                **common, "mode": "lines", "hoverinfo": "skip",
                "line": {"width": 0, "color": colour}, "showlegend": False,
            }  # fmt: skip
            low = np.asarray(line.least, dtype=np.float64)
            if panel.scale == "log":
                low = np.where(low > 0, low, np.nan)
            data.append({**edge, "y": low})
            fill = {"fill": "tonexty", "fillcolor": faint(colour, 0.22)}
            data.append({**edge, **fill, "y": np.asarray(line.greatest)})
        few = line.markers or np.isfinite(line.value).sum() < 2
        data.append(
            {
                **common,
                "y": np.asarray(line.value),
                "name": names[index],
                "showlegend": len(panel.lines) > 1,
                "mode": "lines+markers" if few else "lines",
                "line": {
                    "color": colour,
                    "width": 1.8,
                    **({"dash": full.dash} if full.dash else {}),
                    **({"shape": "hv"} if full.held else {}),
                },
                "marker": {"size": 5, "color": colour},
                "hovertemplate": read,
            }
        )
    return data


def _read_as(panel: Panel, line: Line) -> str:
    """What a number is called under the cursor: `training loss`, `gradient norm, as used`."""
    title, name = panel.title, line.name
    if name == title or (len(panel.lines) == 1 and title != "loss"):
        return plotly_text(shorten(title))
    if title == "loss":
        phase, comma, rest = name.partition(", ")
        return plotly_text(shorten(f"{phase} loss{comma}{rest}"))
    return plotly_text(shorten(f"{title}, {name}"))


def _form(panel: Panel, line: Line) -> str:
    """The format of a number under the cursor: `0.153`, and `5.6e-4` where numbers are small."""
    if panel.scale == "share":
        return ":.2~%"
    values = np.abs(np.asarray(line.value, dtype=np.float64))
    finite = values[np.isfinite(values) & (values > 0)]
    return ":.3~e" if finite.size and float(np.median(finite)) < _SMALL else ":.4~g"


def _mark_trace(marks: Sequence[Mark]) -> dict[str, Any]:
    shown = marks[:_MOST_MARKS]
    looks = [SEVERITIES.get(mark.severity, (GREY, "square")) for mark in shown]
    events = [mark.severity not in SEVERITIES for mark in shown]
    named = 0 < sum(events) <= _MOST_LABELS
    words = {
        "mode": "markers+text",
        "textposition": "middle right",
        "texttemplate": [
            f" {plotly_text(mark.label)}" if event else ""
            for mark, event in zip(shown, events, strict=True)
        ],
    }
    return {
        "type": "scatter",
        **(words if named else {"mode": "markers"}),
        "name": "finding",
        "showlegend": False,
        "yaxis": "y20",
        "xaxis": "x",
        "x": [float(mark.step) for mark in shown],
        "y": [0.0] * len(shown),
        "marker": {
            "size": 11,
            "color": [colour for colour, _ in looks],
            "symbol": [symbol for _, symbol in looks],
            "line": {"width": 0},
        },
        "customdata": [[mark.anchor] for mark in shown],
        "text": [
            f"<b>{plotly_text(mark.label)}</b> {plotly_text(shorten(mark.text, 90))}"
            for mark in shown
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "cliponaxis": False,
    }


def _mark_line(mark: Mark) -> dict[str, Any]:
    colour, _ = SEVERITIES.get(mark.severity, (GREY, ""))
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": mark.step, "x1": mark.step,
        "y0": 0, "y1": 1, "line": {"color": colour, "width": 1.2, "dash": "dot"},
    }  # fmt: skip


def onset(mark: Mark) -> list[dict[str, Any]]:
    """Shapes that show since when something is so, and until when."""
    colour, _ = SEVERITIES.get(mark.severity, (GREY, ""))
    shapes = [_mark_line(mark)]
    if mark.last_step is not None and mark.last_step > mark.step:
        shapes.append(
            {
                "type": "rect", "xref": "x", "yref": "paper", "x0": mark.step, "y0": 0, "y1": 1,
                "x1": mark.last_step, "fillcolor": faint(colour, 0.07), "line": {"width": 0},
                "layer": "below",
            }
        )  # fmt: skip
    return shapes


def _threshold(panel: Panel, axis_number: int) -> dict[str, Any]:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": _axis("y", axis_number),
        "y0": panel.threshold, "y1": panel.threshold,
        "line": {"color": GREY, "width": 1.5, "dash": "dash"},
    }  # fmt: skip


def _threshold_text(panel: Panel, axis_number: int) -> dict[str, Any]:
    value = float(panel.threshold or 0.0)
    shown = share(value) if panel.scale == "share" else number(value)
    return {
        "text": plotly_text(panel.limit) or f"threshold {shown}",
        "xref": "paper", "x": 0.995, "xanchor": "right",
        "yref": _axis("y", axis_number), "yanchor": "bottom", "showarrow": False,
        "y": np.log10(value) if panel.scale == "log" and value > 0 else value,
    }  # fmt: skip
