"""One number of every layer at a step, from the first layer to the last; a second run beside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from nethook.drawing.data import Spec
from nethook.drawing.quantities import QUANTITIES
from nethook.drawing.training.heatmap import height_of
from nethook.figures.evidence import depth_spec
from nethook.figures.reading import Reading
from nethook.figures.runs import beside_spec
from nethook.page.markup import empty_figure
from nethook.page.section import Drawing, Section, Subject
from nethook.page.sections.layers import Pane, offered_quantities
from nethook.page.urls import Place

_NONE: Final = "The run has no such numbers yet."
_OVER_DEPTH: Final = ("output_gradients", "gradients", "spread", "updates")


def depth(
    subject: Subject, where: Place, others: Sequence[tuple[str, str]], beside: Subject | None
) -> Section:
    """The section of a profile that is chosen; `others` are the runs that can stand beside it."""
    reading = subject.reading
    offered = offered_quantities(reading)
    usual = "output_gradients" if "output_gradients" in offered else (offered or ["spread"])[0]
    chosen = where.quantity(usual)
    last = max(0, reading.last_step)
    asked = where.number("step")
    step = last if asked is None else min(asked, last)
    tag = repr((subject.tag, beside and beside.tag, chosen, step))
    other = beside.reading if beside is not None else None
    figures = {"profile": Drawing(tag, lambda: _profile(subject, other, chosen, step))}

    def data() -> dict[str, Any]:
        quantity = QUANTITIES[chosen]
        return {
            "options": [(name, QUANTITIES[name].title) for name in offered],
            "chosen": chosen,
            "runs": [("", "no other run"), *others],
            "beside": where.text("with") if beside is not None else "",
            "step": step,
            "last": last,
            "panes": [Pane(quantity.title, quantity.explain, "profile", 400)],
        }

    return Section("depth", tag, data, figures)


def all_depths(subject: Subject) -> Section:
    """The section of the usual profiles at the start, the middle and the end: for a report."""
    reading = subject.reading
    last = max(0, reading.last_step)
    steps = sorted({0, last // 2, last})
    panes, figures = [], {}
    for name in _OVER_DEPTH:
        grid = reading.grid(name)
        if grid is not None:
            figure = f"depth-{name}"
            quantity = grid.quantity
            height = height_of(len(grid.rows))
            panes.append(Pane(quantity.title, quantity.explain, figure, height))
            figures[figure] = Drawing(subject.tag, partial(_over_depth, reading, name, steps))
    data: dict[str, Any] = {
        "options": [], "chosen": "", "runs": [], "beside": "", "step": 0, "last": last,
        "panes": panes,
    }  # fmt: skip
    return Section("depth", subject.tag, lambda: data, figures)


def _profile(subject: Subject, other: Reading | None, chosen: str, step: int) -> Spec:
    reading = subject.reading
    grid = reading.grid(chosen)
    if grid is None:
        return empty_figure(_NONE)
    spec = None
    if other is not None and other.grid(chosen) is not None:
        spec = beside_spec(reading, other, chosen, step)
    spec = _untitled(spec or depth_spec(reading, chosen, sorted({0, step})))
    if spec is None:
        return empty_figure(_NONE)
    links = [{"to": subject.links.layer(row, step=step)} for row in grid.rows]
    spec["layout"]["meta"] = {"links": links}
    return spec


def _over_depth(reading: Reading, name: str, steps: list[int]) -> Spec | None:
    return _untitled(depth_spec(reading, name, steps))


def _untitled(spec: Spec | None) -> Spec | None:
    if spec is not None:
        spec["layout"].pop("title", None)
        spec["layout"]["margin"] = {"t": 36}
    return spec
