"""What watching costs in a run, and how much it measured."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from nethook.drawing.data import Line, Panel, Spec
from nethook.drawing.decimate import thin_line
from nethook.drawing.palette import BLUE, GREEN, LINES, PURPLE
from nethook.drawing.quantities import QUANTITIES
from nethook.drawing.training.curves import curves
from nethook.figures.coverage import coverage, coverage_line
from nethook.figures.reading import Reading
from nethook.page.markup import empty_figure
from nethook.page.section import Drawing, Section, Subject
from nethook.runs import names
from nethook.text.escape import shorten
from nethook.text.numbers import seconds, share, size
from nethook.text.watch_cost import watch_cost, watch_cost_parts

_POINTS: Final = 60  # of what was measured
_COVERED: Final = ("spread", "output_gradients", "gradients", "updates", "weights")


def cost(subject: Subject) -> Section:
    """The section of what watching costs."""
    reading = subject.reading
    figures = {"costs": Drawing(subject.tag, lambda: courses(reading))}
    return Section("cost", subject.tag, lambda: {"facts": cost_facts(reading)}, figures)


def cost_facts(reading: Reading) -> list[tuple[str, str]]:
    """The cost in words, its parts, and how much was measured."""
    info = reading.run.info
    rows: list[tuple[str, str]] = []
    budget = _budget(reading)
    if spent := watch_cost(info):
        rows.append(("cost of watching", spent))
    if parts := watch_cost_parts(info):
        rows.append(("of which", ", ".join(f"{name} {each}" for name, each in parts)))
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
    return rows + _diagnosis(info.get("diagnosis"))


def _diagnosis(stored: Any) -> list[tuple[str, str]]:
    """How long the last diagnosis took, and what failed in it."""
    if not isinstance(stored, dict):
        return []
    rows = []
    took = stored.get("seconds")
    if isinstance(took, int | float) and np.isfinite(took):
        rows.append(("last diagnosis took", seconds(float(took))))
    if failed := stored.get("failed"):
        rows.append(("rules that failed", shorten(failed, 120)))
    return rows


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
                limit="" if budget is None else f"budget {share(budget)}",
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
