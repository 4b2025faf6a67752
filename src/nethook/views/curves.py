"""Numbers over steps: panels above each other with one cursor, findings marked above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nethook.views.escape import labels, plotly_text, shorten
from nethook.views.numbers import number, share
from nethook.views.palette import GREY, LINES, SEVERITIES, faint
from nethook.views.plain import Line, Mark, Panel, Spec
from nethook.views.thin import thin_line

_GAP: Final = 0.035  # between panels, of the height
_PIXELS: Final = 130  # of a panel with tall=1
_MOST_MARKS: Final = 40


def curves(
    panels: Sequence[Panel], marks: Sequence[Mark] = (), title: str = "", *, height: int = 0
) -> Spec:
    """Panels on one axis of steps."""
    total = sum(panel.tall for panel in panels) or 1.0
    room = 1.0 - _GAP * max(0, len(panels) - 1) - (0.05 if marks else 0.0)
    data: list[dict[str, Any]] = []
    pixels = height or int(90 + _PIXELS * total + 20 * len(panels))
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
            "tickformat": ",~f",
        },
        "shapes": [],
        "annotations": [],
        "margin": {"t": 46 if title else 18},
    }
    if title:
        layout["title"] = {"text": plotly_text(title)}
    top = 1.0
    if marks:
        layout["yaxis20"] = {"domain": [0.96, 1.0], "visible": False, "range": [-1, 1]}
        data.append(_mark_trace(marks))
        layout["shapes"] += [_mark_line(mark) for mark in marks[:_MOST_MARKS]]
        top = 0.95
    for place, panel in enumerate(panels, start=1):
        bottom = max(0.0, top - room * panel.tall / total)
        layout[_axis("yaxis", place)] = _y_axis(panel, bottom, top)
        layout["annotations"].append(_caption(panel, top))
        data += _lines(panel, place)
        if panel.threshold is not None:
            layout["shapes"].append(_threshold(panel, place))
            layout["annotations"].append(_threshold_text(panel, place))
        top = bottom - _GAP
    return {"data": data, "layout": layout}


def _axis(name: str, place: int) -> str:
    return name if place == 1 else f"{name}{place}"


def _y_axis(panel: Panel, bottom: float, top: float) -> dict[str, Any]:
    axis: dict[str, Any] = {"domain": [bottom, top], "nticks": 5, "hoverformat": ".4~g"}
    if panel.unit:
        axis["title"] = {"text": plotly_text(panel.unit)}
    if panel.scale == "log":
        axis |= {"type": "log", "exponentformat": "power", "dtick": None}
        values = [_finite(line.value) for line in panel.lines]
        positive = np.concatenate([each[each > 0] for each in values] or [np.ones(0)])
        if positive.size:
            span = np.log10(positive.max()) - np.log10(positive.min())
            axis["dtick"] = max(1, int(np.ceil(span / 4)))
            if span < 1:  # a decade of its own has no ticks inside
                axis["dtick"] = "D2"
        axis = {name: value for name, value in axis.items() if value is not None}
    elif panel.scale == "share":
        axis |= {"tickformat": ".0%", "hoverformat": ".2~%", "rangemode": "tozero"}
    return axis


def _finite(values: Any) -> Any:
    array = np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array)]


def _caption(panel: Panel, top: float) -> dict[str, Any]:
    """The name of a panel, inside its upper left corner, where it costs no room."""
    return {
        "text": f"<b>{plotly_text(panel.title)}</b>{_legend(panel)}",
        "xref": "paper", "yref": "paper", "x": 0.006, "y": top,
        "xanchor": "left", "yanchor": "top", "showarrow": False,
        "hovertext": plotly_text(panel.explain), "font": {"size": 12},
    }  # fmt: skip


def _legend(panel: Panel) -> str:
    if len(panel.lines) < 2:
        return ""
    shown = [
        f'<span style="color:{_colour(line, at)}">{"┄" if line.dash else "━"} '
        f"{plotly_text(shorten(line.name, 32))}</span>"
        for at, line in enumerate(panel.lines[:6])
    ]
    more = f"   … {len(panel.lines) - 6} more" if len(panel.lines) > 6 else ""
    return "   " + "   ".join(shown) + more


def _colour(line: Line, at: int) -> str:
    return line.colour or LINES[at % len(LINES)]


def _lines(panel: Panel, place: int) -> list[dict[str, Any]]:
    axis = _axis("y", place)
    data: list[dict[str, Any]] = []
    form = {"share": ":.2~%"}.get(panel.scale, ":.4~g")
    names = labels([line.name for line in panel.lines], 32)
    for at, full in enumerate(panel.lines):
        line, colour = thin_line(full), _colour(full, at)
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
                "name": names[at],
                "mode": "lines+markers" if few else "lines",
                "line": {"color": colour, "width": 1.8, **({"dash": full.dash} if full.dash else {})},
                "marker": {"size": 5, "color": colour},
                "hovertemplate": f"%{{y{form}}}",
            }
        )  # fmt: skip
    return data


def _mark_trace(marks: Sequence[Mark]) -> dict[str, Any]:
    shown = marks[:_MOST_MARKS]
    looks = [SEVERITIES.get(mark.severity, (GREY, "square")) for mark in shown]
    return {
        "type": "scatter", "mode": "markers", "name": "finding", "yaxis": "y20", "xaxis": "x",
        "x": [float(mark.step) for mark in shown], "y": [0.0] * len(shown),
        "marker": {
            "size": 11, "color": [colour for colour, _ in looks],
            "symbol": [symbol for _, symbol in looks], "line": {"width": 0},
        },
        "customdata": [[mark.anchor] for mark in shown],
        "text": [f"<b>{plotly_text(mark.label)}</b> {plotly_text(shorten(mark.text, 90))}" for mark in shown],
        "hovertemplate": "%{text}<extra></extra>",
        "cliponaxis": False,
    }  # fmt: skip


def _mark_line(mark: Mark) -> dict[str, Any]:
    colour, _ = SEVERITIES.get(mark.severity, (GREY, ""))
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": mark.step, "x1": mark.step,
        "y0": 0, "y1": 0.98, "line": {"color": colour, "width": 1.2, "dash": "dot"},
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


def _threshold(panel: Panel, place: int) -> dict[str, Any]:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": _axis("y", place),
        "y0": panel.threshold, "y1": panel.threshold,
        "line": {"color": GREY, "width": 1.5, "dash": "dash"},
    }  # fmt: skip


def _threshold_text(panel: Panel, place: int) -> dict[str, Any]:
    value = float(panel.threshold or 0.0)
    shown = share(value) if panel.scale == "share" else number(value)
    return {
        "text": f"threshold {shown}", "xref": "paper", "x": 0.995, "xanchor": "right",
        "yref": _axis("y", place), "yanchor": "bottom", "showarrow": False,
        "y": np.log10(value) if panel.scale == "log" and value > 0 else value,
    }  # fmt: skip
