"""A report: one HTML file with the verdict, what shows it, the overview and every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from nethook.doctor.verdict import verdict_of
from nethook.drawing.data import Grid, Mark, Spec
from nethook.drawing.decimate import COLUMNS
from nethook.drawing.heatmap import heatmap
from nethook.drawing.module_tree import tree
from nethook.drawing.render import payload
from nethook.errors import MissingLibraryError
from nethook.figures.evidence import depth_spec, finding_specs
from nethook.figures.reading import Reading
from nethook.figures.runs import AnyRun, overview_spec
from nethook.figures.site_order import tree_rows
from nethook.page.report.html import Report, Tab, page
from nethook.page.report.writing import write_whole
from nethook.page.sections.about import events_of, facts_of, ran_of, subtitle_of
from nethook.page.sections.layer_details import layers_within
from nethook.text.escape import script_json
from nethook.text.findings import Finding
from nethook.text.numbers import share
from nethook.text.paragraphs import capitalized

SIZE: Final = 8_000_000
"""Bytes of a report at most, with plotly.js."""
_ROOM: Final = 20_000  # for what stands around figures
_FINDINGS: Final = 0.35  # share of all that the figures of findings may take
_HEATMAPS: Final = 0.5  # share of the rest that heatmaps may take
_OVER_DEPTH: Final = ("output_gradients", "gradients", "spread", "updates")
_MOST_FINDINGS: Final = 200
_GAPS: Final = 0.02  # share of empty cells from which they are explained
_MOST_MODULES: Final = 400  # of the tree


def write_report(run: AnyRun, to: str | Path) -> Path:
    """Write the report of a run: see `nethook.figures.report`."""
    reading = Reading(run)
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingLibraryError(
            "a report is drawn by plotly, which is not installed: pip install 'nethook[ui]'"
        ) from None
    script = get_plotlyjs()
    made = page(contents(reading, SIZE - len(script.encode("utf-8"))), script)
    return write_whole(Path(to), made)


def contents(reading: Reading, room: int) -> Report:
    """What a report of at most `room` bytes, without plotly.js, shows."""
    bare = _texts(reading)
    room -= len(page(bare, "").encode("utf-8")) + _ROOM
    shown = _shown(reading, int(room * _FINDINGS))
    overview = overview_spec(reading, reading.marks)
    depth = _depths(reading)
    rows = tree_rows(reading.order)
    model = tree(rows, "") if 1 < len(rows) <= _MOST_MODULES else None
    fixed: list[Spec] = [spec for _, specs in shown for spec in specs]
    fixed += [overview, *(tab.spec for tab in depth), *([model] if model else [])]
    room -= sum(weight(spec) for spec in fixed)
    tabs = _heatmaps(reading.grids(), reading.marks, int(room * _HEATMAPS))
    room -= sum(weight(tab.spec) for tab in tabs)
    layers, note = layers_within(reading, room)
    return replace(
        bare,
        findings=shown,
        overview=overview if overview["data"] else None,
        tabs=tabs,
        depth=depth,
        tree=model,
        layers=layers,
        layers_note=note,
    )


def _texts(reading: Reading) -> Report:
    """A report without its figures and layers."""
    findings = reading.findings
    verdict = verdict_of(reading.run)
    is_found = verdict.state == "findings"
    return Report(
        title=reading.run.path.stem,
        subtitle=subtitle_of(reading),
        verdict=capitalized(verdict.why if is_found else verdict.state),
        severity="" if verdict.severity == "quiet" else verdict.severity,
        note=_note(reading, "" if is_found else verdict.why),
        facts=facts_of(reading),
        findings=[(finding, []) for finding in findings[:_MOST_FINDINGS]],
        overview=None,
        tabs=[],
        depth=[],
        tree=None,
        layers=[],
        layers_note="",
        events=events_of(reading),
        ran=ran_of(reading),
    )


def _shown(reading: Reading, room: int) -> list[tuple[Finding, list[Spec]]]:
    """Each finding with its figures, the worst first, as long as there is room for them."""
    shown: list[tuple[Finding, list[Spec]]] = []
    for finding in reading.findings[:_MOST_FINDINGS]:
        specs = finding_specs(reading, finding)
        size = sum(weight(spec) for spec in specs)
        if size > room:
            specs, size = [], 0
        room -= size
        shown.append((finding, specs))
    return shown


def weight(spec: Spec) -> int:
    """The bytes of a figure in a report."""
    return len(script_json(payload(spec))) + 300


def _note(reading: Reading, why: str) -> str:
    """What to know before the verdict is believed."""
    states = [rank.state for rank in reading.run.ranks]
    said = [f"{capitalized(why)}."] if why else []
    if len(reading.findings) > _MOST_FINDINGS:
        said.append(f"Of {len(reading.findings):,} findings the first {_MOST_FINDINGS} are shown.")
    if "open" in states:
        said.append("The run was still being written when this report was made.")
    elif "died" in states:
        said.append("The run was cut off: its process ended without closing it.")
    if gone := sum(state in ("missing", "unreadable") for state in states):
        said.append(f"{gone} of {len(states)} ranks are missing.")
    return " ".join(said)


def _heatmaps(grids: dict[str, Grid], marks: Sequence[Mark], room: int) -> list[Tab]:
    """A heatmap a quantity, with so many columns that all fit."""
    cells = sum(
        len(grid.rows) * (1 if grid.least is grid.greatest else 3) for grid in grids.values()
    )
    fitting = int(room / 1.4 / max(1, cells))
    columns = max(40, min(COLUMNS, fitting))
    tabs = []
    for grid in grids.values():
        spec = heatmap(grid, marks, columns=columns, titled=False)
        tabs.append(Tab(grid.quantity.title, f"{grid.quantity.explain}{_gaps(grid)}", spec))
    return tabs


def _gaps(grid: Grid) -> str:
    """What empty cells mean, where there are some."""
    empty = float(np.isnan(grid.last).mean())
    if empty < _GAPS:
        return ""
    return f" Empty cells ({share(empty)}) were not measured: watching kept its budget."


def _depths(reading: Reading) -> list[Tab]:
    """Profiles at the start, in the middle and at the end."""
    last = max(0, reading.last_step)
    steps = sorted({0, last // 2, last})
    tabs = []
    for name in _OVER_DEPTH:
        spec: dict[str, Any] | None = depth_spec(reading, name, steps)
        if spec is not None:
            grid = reading.needed_grid(name)
            spec["layout"].pop("title", None)
            spec["layout"]["margin"] = {"t": 36}
            tabs.append(Tab(grid.quantity.title, grid.quantity.explain, spec))
    return tabs
