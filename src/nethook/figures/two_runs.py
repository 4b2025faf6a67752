"""Runs in one figure: their losses, and where every layer of one differs from the other's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nethook.drawing.data import Grid, Line, Mark, Panel, Quantity, Spec
from nethook.drawing.decimate import POINTS, thin_grid
from nethook.drawing.palette import LINES
from nethook.drawing.training.curves import curves
from nethook.drawing.training.heatmap import heatmap
from nethook.figures.panels import loss_panel, norm_panel
from nethook.figures.reading import Reading


def curves_of(
    readings: Sequence[Reading],
    names: Sequence[str],
    marks: Sequence[Mark],
    *,
    titled: bool = True,
    points: int = POINTS,
) -> Spec:
    """Loss and gradient norm of several runs, a colour a run."""
    made = []
    for panel_of in (loss_panel, norm_panel):
        panels = [panel_of(reading) for reading in readings]
        lines = [
            _named(line, name, LINES[index % len(LINES)])
            for index, (panel, name) in enumerate(zip(panels, names, strict=True))
            if panel is not None
            for line in panel.lines
        ]
        there = [panel for panel in panels if panel is not None]
        if there:
            scale = "log" if all(panel.scale == "log" for panel in there) else "linear"
            made.append(Panel(there[0].title, lines, there[0].explain, scale=scale, tall=1.5))
    return curves(made, marks, " and ".join(names) if titled else "", points=points)


def _named(line: Line, name: str, colour: str) -> Line:
    dash = {"evaluation": "dash", "before clipping": "dot", "clipped to": "dashdot"}
    style = next((value for word, value in dash.items() if line.name.startswith(word)), "")
    return replace(line, name=f"{name}, {line.name}", colour=colour, dash=style)


def ratio_of_two(
    first: Reading, second: Reading, name: str, names: tuple[str, str], marks: list[Mark]
) -> Spec | None:
    """How much more the second has than the first, layer by layer: powers of two."""
    grids = [first.grid(name), second.grid(name)]
    if grids[0] is None or grids[1] is None:
        return None
    one, two = thin_grid(grids[0]), thin_grid(grids[1])
    rows = [row for row in one.rows if row in set(two.rows)]
    if not rows:
        return None
    mine = [list(one.rows).index(row) for row in rows]
    theirs = [list(two.rows).index(row) for row in rows]
    # Columns of the first that the second has too: its value there is that of the same step.
    columns = np.searchsorted(two.last_step, one.last_step)
    common = columns < len(two.last_step)
    columns = columns[common]
    left, right = one.last[mine][:, common], two.last[theirs][:, columns]
    quantity = one.quantity
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.log2(right / left) if quantity.scale == "log" else right - left
    change[~np.isfinite(change)] = np.nan
    explain = (
        f"{names[1]} against {names[0]}: +1 is twice as much, −1 half."
        if quantity.scale == "log"
        else f"{names[1]} minus {names[0]}."
    )
    shown = Quantity(
        name, f"{quantity.title}, compared", explain,
        "doublings" if quantity.scale == "log" else quantity.unit, "signed",
    )  # fmt: skip
    grid = Grid(shown, rows, one.first_step[common], one.last_step[common], change, change, change)
    return heatmap(grid, marks) if grid.last.size and not np.isnan(change).all() else None
