"""Layers over steps: every layer a row, every colour a number; of which quantity can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from nethook.drawing.data import Grid, Spec
from nethook.drawing.quantities import QUANTITIES
from nethook.drawing.training.heatmap import heatmap, height_of
from nethook.figures.coverage import SOURCES, WHOLE, coverage, coverage_line
from nethook.figures.reading import Reading
from nethook.figures.runs import WORDS
from nethook.page.folding import first_folds, fold_grid, groups_of, visible
from nethook.page.markup import empty_figure
from nethook.page.section import Drawing, Section, Subject
from nethook.page.urls import Place
from nethook.runs import names
from nethook.text.escape import shorten
from nethook.text.numbers import share

_CELLS: Final = 16_000  # of a heatmap that is sent
_GAPS: Final = 0.02  # share of empty cells from which they are explained
_FIRST: Final = ("gradients", "output_gradients", "spread")  # what is shown unless it is chosen
_NEEDS: Final = {
    "gradients": names.PARAM_GRADS,
    "output_gradients": names.GRADS,
    "updates": names.UPDATES,
    "weights": names.PARAMS,
}


class Pane(NamedTuple):
    """One of several figures in one place."""

    name: str
    explain: str
    figure: str
    height: int


def layers(subject: Subject, where: Place) -> Section:
    """The section of one quantity, which is chosen."""
    reading = subject.reading
    offered = offered_quantities(reading)
    chosen = where.quantity(first_quantity(offered))
    asked = (chosen, where.text("fold"), "fold" in where.query, where.flag("all"))
    tag = repr((subject.tag, asked))
    figures = {"heatmap": Drawing(tag, lambda: heatmap_spec(subject, chosen, where))}
    return Section("layers", tag, lambda: _data(subject, offered, chosen, where), figures)


def all_layers(subject: Subject, columns: int) -> Section:
    """The section of every quantity, each with so many columns: for a report."""
    grids = subject.reading.grids()
    panes = [
        Pane(grid.quantity.title, _explain_grid(grid), f"heatmap-{name}", height_of(len(grid.rows)))
        for name, grid in grids.items()
    ]
    marks = subject.reading.marks
    figures = {
        f"heatmap-{name}": Drawing(
            subject.tag, partial(heatmap, grid, marks, columns=columns, titled=False)
        )
        for name, grid in grids.items()
    }
    data: dict[str, Any] = {"options": [], "chosen": "", "all_time": False, "panes": panes}
    return Section("layers", subject.tag, lambda: {**data, "ends": [], "folds": []}, figures)


def first_quantity(offered: Sequence[str]) -> str:
    """What is shown before anything is chosen."""
    return next((name for name in (*_FIRST, *offered) if name in offered), "spread")


def offered_quantities(reading: Reading) -> list[str]:
    """What the heatmap can show of this run, without reading it."""
    there = {quantity for _, quantity in reading.catalogue}
    kinds = {str(site.info.get("activation")) for site in reading.order.sites.values()}
    told = kinds - {"None"}
    units = any(
        info.units for (_, quantity), info in reading.catalogue.items() if quantity == names.OUTPUTS
    )
    offered = []
    for name in QUANTITIES:
        needed = _NEEDS.get(name, names.OUTPUTS)
        fits = {
            "silent": units and (not told or "rectifier" in told),
            "ends": not told or "bounded" in told,
        }
        if needed in there and fits.get(name, True):
            offered.append(name)
    return offered


def _data(subject: Subject, offered: list[str], chosen: str, where: Place) -> dict[str, Any]:
    reading = subject.reading
    grid = reading.grid(chosen)
    ends, folds = _folds(reading, grid, where) if grid is not None else ([], [])
    explain = _explain(reading, chosen)
    return {
        "options": [(name, QUANTITIES[name].title) for name in offered],
        "chosen": chosen,
        "all_time": where.flag("all"),
        "panes": [Pane(QUANTITIES[chosen].title, explain, "heatmap", 320)] if offered else [],
        "ends": ends,
        "folds": folds,
    }


def _explain(reading: Reading, chosen: str) -> str:
    """What is seen, in one sentence, and how much of it was measured."""
    said = [QUANTITIES[chosen].explain]
    measured = coverage(reading, chosen)
    if measured is not None and measured < WHOLE:
        what = WORDS[SOURCES.get(chosen, "outputs")]
        said.append(
            f"The {what} were measured in {share(measured)} of the steps, to stay within the "
            "budget of watching; the strip above the colours shows where."
        )
    return " ".join(said)


def _explain_grid(grid: Grid) -> str:
    """What is seen, and what empty cells mean where there are some."""
    empty = _share_empty(grid)
    if empty < _GAPS:
        return grid.quantity.explain
    return (
        f"{grid.quantity.explain} Empty cells ({share(empty)}) were not measured: watching kept "
        "its budget."
    )


def _share_empty(grid: Grid) -> float:
    """The share of the picture that is empty: a cell is as wide as the steps that it stands for."""
    if not grid.last.size:
        return 0.0
    wide = (grid.last_step - grid.first_step + 1).astype(float)
    return float(np.average(np.isnan(grid.last).mean(axis=0), weights=wide))


def _folds(
    reading: Reading, grid: Grid, where: Place
) -> tuple[list[tuple[str, str]], list[tuple[str, str, bool]]]:
    """Buttons that fold everything, and one for every module that can be folded or opened."""
    groups = groups_of(grid.rows, set(reading.layers()))
    if not groups:
        return [], []
    folds = folds_of(where, grid.rows, groups)
    shown = {row.name for row in visible(grid.rows, groups, folds)}
    buttons = []
    for name, places in groups.items():
        if any(name.startswith(f"{other}.") for other in folds):
            continue  # inside of what is folded
        closed = name in shown and name in folds
        new = folds - {name} if closed else (folds | {name})
        text = f"{'▸' if closed else '▾'} {shorten(name, 40)} ({len(places)})"
        buttons.append((text, "~".join(sorted(new)), not closed))
    every = {name for name in groups if "." not in name}
    return [("fold all", "~".join(sorted(every or set(groups)))), ("open all", "")], buttons


def folds_of(where: Place, rows: Sequence[str], groups: dict[str, list[int]]) -> set[str]:
    """Which groups are folded: as the address says, else as few as are needed."""
    asked = where.names("fold")
    if asked is None:
        return first_folds(rows, groups)
    return {name for name in asked if name in groups}


def heatmap_spec(subject: Subject, chosen: str, where: Place) -> Spec:
    """The heatmap of a quantity, folded; each row knows where a click on it leads."""
    reading = subject.reading
    grid = reading.grid(chosen)
    if grid is None:
        return empty_figure("The run has no such numbers yet.")
    groups = groups_of(grid.rows, set(reading.layers()))
    folds = folds_of(where, grid.rows, groups)
    shown = visible(grid.rows, groups, folds)
    columns = max(40, min(300, _CELLS // max(1, len(shown))))
    spec = heatmap(
        fold_grid(grid, shown), reading.marks, all_time=where.flag("all"), columns=columns,
        titled=False, switch=False, measured=coverage_line(reading, chosen),
    )  # fmt: skip
    spec["layout"]["margin"] = {"t": 12}
    links = []
    for row in shown:
        if row.folded:
            links.append({"fold": "~".join(sorted(folds - {row.name}))})
        else:
            links.append({"to": subject.links.layer(row.name, q=chosen)})
    spec["layout"]["meta"] = {"links": links}
    return spec
