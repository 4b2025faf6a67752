"""Loss and loop: loss, learning rate, gradient norm, update ratio and what was logged."""

from __future__ import annotations

from typing import Any, Final

from nethook.drawing.data import Spec
from nethook.figures.axes import axes_of
from nethook.figures.runs import overview_spec
from nethook.page.markup import empty_figure
from nethook.page.section import Drawing, Section, Subject
from nethook.page.urls import Place

_TALL: Final = 76  # pixels of a panel: all of them and the heatmap below fit a large screen
AXES: Final = {"step": "steps", "epoch": "epochs", "time": "time"}
"""What can run along the axis, and what it is called."""


def loop(subject: Subject, where: Place) -> Section:
    """The section of curves."""
    figures = {"curves": Drawing(subject.tag, lambda: curves_spec(subject))}
    tag = repr((subject.tag, where.text("x"), where.text("smooth"), where.text("log")))
    return Section("loop", tag, lambda: _data(subject, where), figures)


def curves_spec(subject: Subject, between: tuple[float, float] | None = None) -> Spec:
    """The curves; with `between` only what lies there, as fine as it is kept."""
    reading = subject.reading
    spec = overview_spec(reading, reading.marks, tall=_TALL, between=between)
    if not spec["data"]:
        return empty_figure("No step has been recorded yet.")
    meta: dict[str, Any] = {"curves": True, "axes": axes_of(reading)}
    if subject.live:
        meta["fine"] = subject.links.view("fine")
    spec["layout"]["meta"] = spec["layout"].get("meta", {}) | meta
    return spec


def _data(subject: Subject, where: Place) -> dict[str, Any]:
    offered = {"step", *axes_of(subject.reading)}
    asked = where.text("x")
    smooth = where.number("smooth") or 0
    log = where.text("log")
    return {
        "axes": [(name, text) for name, text in AXES.items() if name in offered],
        "axis": asked if asked in offered else "step",
        "smooth": min(smooth, 99),
        "scale": log if log in ("log", "linear") else "",
    }
