"""How nethook itself is doing in a run: what it costs, what it measured, what happened."""

from __future__ import annotations

from typing import Final

import numpy as np
from dash import html

from nethook.drawing.curves import curves
from nethook.drawing.data import Line, Panel, Spec
from nethook.drawing.decimate import thin_line
from nethook.drawing.palette import BLUE, GREEN, LINES, PURPLE
from nethook.drawing.quantities import QUANTITIES
from nethook.figures.coverage import coverage, coverage_line
from nethook.figures.reading import Reading
from nethook.page.folder import Opened
from nethook.page.html import (
    Node,
    Part,
    Shown,
    badge,
    empty_figure,
    facts,
    figure,
    place,
    said,
    table,
)
from nethook.page.sections.about import events_of, ran_of
from nethook.page.urls import Place
from nethook.runs import names
from nethook.text.numbers import seconds, share, size
from nethook.text.watch_cost import watch_cost, watch_cost_parts

_POINTS: Final = 60  # of what was measured
_COVERED: Final = ("spread", "output_gradients", "gradients", "updates", "weights")
_STATES: Final = {"open": "good", "finished": "quiet", "died": "warning"}


def health(opened: Opened, reading: Reading, _: Place) -> Shown:
    """The view of nethook itself."""
    tag = opened.tag
    body = [
        html.H1("Overhead"),
        html.P("What watching costs, how much it measured, and what happened.", className="sub"),
        place("cost"),
        html.Div(
            figure("courses", "Cost of watching and coverage over steps", 380), className="card"
        ),
        html.Div([html.H2("Ranks"), place("ranks")], className="card"),
        html.Div([html.H2("Events"), place("events")], className="card"),
        html.Div([html.H2("What ran"), place("ran")], className="card"),
    ]
    parts = {
        "cost": Part(tag, lambda: _cost(reading)),
        "courses": Part(tag, lambda: courses(reading), figure=True),
        "ranks": Part(tag, lambda: _ranks(reading)),
        "events": Part(tag, lambda: _events(reading)),
        "ran": Part(tag, lambda: _ran(reading)),
    }
    return Shown("Overhead – nethook", body, parts)


def _cost(reading: Reading) -> Node:
    info = reading.run.info
    rows: list[tuple[str, Node]] = []
    budget = _budget(reading)
    if cost := watch_cost(info):
        rows.append(("cost of watching", cost))
    if parts := watch_cost_parts(info):
        rows.append(("of which", ", ".join(f"{name} {spent}" for name, spent in parts)))
    rows.append(("budget", "none: all is measured" if budget is None else share(budget)))
    covered = coverage(reading)
    if covered is not None:
        rows.append(("layers measured", f"{share(covered)} of the steps"))
    rows.append(("series", f"{len(reading.catalogue):,}"))
    memory = info.get("memory")
    if isinstance(memory, dict):
        kept = [memory.get(name) for name in ("rows", "snapshot")]
        total = sum(size for size in kept if isinstance(size, int) and 0 <= size < 1 << 50)
        rows.append(("memory of watching", size(total)))
    diagnosis = info.get("diagnosis")
    if isinstance(diagnosis, dict):
        took = diagnosis.get("seconds")
        if isinstance(took, int | float) and np.isfinite(took):
            rows.append(("last diagnosis took", seconds(float(took))))
        failed = diagnosis.get("failed")
        if failed:
            rows.append(("rules that failed", said(failed, 120)))
    return html.Div(facts(rows), className="card")


def _budget(reading: Reading) -> float | None:
    watch = reading.run.info.get("watch")
    budget = watch.get("budget") if isinstance(watch, dict) else None
    good = isinstance(budget, int | float) and 0 < budget <= 10
    return float(budget) if good and budget is not None else None


def courses(reading: Reading) -> Spec:
    """Time of a step, nethook's share of it, and what was measured."""
    wanted = [(names.LOOP, names.STEP_SECONDS), (names.LOOP, names.WATCH_SECONDS)]
    by_quantity = {series.quantity: series for series in reading.series(wanted)}
    panels = []
    if len(by_quantity) == 2:
        step, watch = by_quantity[names.STEP_SECONDS], by_quantity[names.WATCH_SECONDS]
        with np.errstate(divide="ignore", invalid="ignore"):
            own = watch["mean"] / (step["mean"] - watch["mean"])
        there = np.isfinite(own) & (own > 0)
        cost = Line("watching", step.last_step[there], 100 * own[there], colour=PURPLE)
        budget = _budget(reading)
        panels.append(
            Panel(
                "cost of watching", [cost],
                "Nethook's time in a step by the training's own time in it; the budget is drawn.",
                "% of the step", "log", None if budget is None else 100 * budget, 1.2,
            )
        )  # fmt: skip
        times = Line("a step", step.last_step, step["mean"], colour=BLUE)
        explain = "How long a step took, in seconds, with nethook's part."
        panels.append(Panel("time of a step", [times], explain, "s", "log"))
    measured = []
    for index, name in enumerate(_COVERED):
        line = coverage_line(reading, name)
        if line is not None:
            few = thin_line(line, _POINTS)  # means: what was measured in turns is a share
            shown = Line(QUANTITIES[name].title, few.step, few.value, colour=LINES[index])
            measured.append(shown)
    if not measured and coverage(reading) is not None:
        ends = np.array([0, reading.last_step])
        measured = [Line("everything", ends, np.ones(2), colour=GREEN)]
    if measured:
        explain = "Share of the steps at which each quantity was measured."
        panels.append(Panel("measured", measured, explain, "of the steps", "share"))
    return (
        curves(panels, reading.gaps) if panels else empty_figure("No step has been recorded yet.")
    )


def _ranks(reading: Reading) -> Node:
    rows = [
        [
            str(rank.rank),
            badge({"died": "cut off", "open": "live"}.get(rank.state, rank.state),
                  _STATES.get(rank.state, "error")),
            f"{rank.last_step:,}" if rank.last_step >= 0 else "",
            said(rank.problem, 200),
        ]
        for rank in reading.ranks[:200]
    ]  # fmt: skip
    return table(("rank", "state", "last step", "problem"), rows, right=(2,))


def _events(reading: Reading) -> Node:
    rows = [[said(cell, 300) for cell in row] for row in events_of(reading)]
    if not rows:
        return html.P("Nothing happened that is worth a line.", className="note")
    return table(("step", "kind", "site", "what"), rows, right=(0,))


def _ran(reading: Reading) -> Node:
    rows = [
        html.Tr([html.Th(name, scope="row"), html.Td(said(text, 2000), className="mono")])
        for name, text in ran_of(reading)
    ]
    return html.Table(html.Tbody(rows))
