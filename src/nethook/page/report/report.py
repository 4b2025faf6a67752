"""A report: one HTML file with the verdict, what shows it, the overview and every layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from nethook.drawing.decimate import COLUMNS
from nethook.drawing.rendering.render import payload
from nethook.figures.reading import Reading
from nethook.figures.runs import AnyRun
from nethook.page.report.layers import layers_within
from nethook.page.report.links import ReportLinks
from nethook.page.report.page import Chapter, Made, made, page
from nethook.page.report.studies import studies_beside
from nethook.page.report.writing import write_whole
from nethook.page.section import Drawing, Subject
from nethook.page.sections.cost import cost
from nethook.page.sections.depth import all_depths
from nethook.page.sections.findings import MOST, findings
from nethook.page.sections.layers import all_layers
from nethook.page.sections.loop import loop
from nethook.page.sections.model import model
from nethook.page.sections.pictures import all_pictures
from nethook.page.sections.ran import ran
from nethook.page.sections.verdict import verdict
from nethook.page.urls import Place
from nethook.text.escape import script_json

SIZE: Final = 8_000_000
"""Bytes of a report at most, with plotly.js."""
_ROOM: Final = 20_000  # for what stands around sections
_FINDINGS: Final = 0.35  # share of all that the figures of findings may take
_STUDIES: Final = 0.4  # share of all that studies may take
_PICTURES: Final = 0.4  # share of all that snapshots may take, where they are wanted
_HEATMAPS: Final = 0.5  # share of the rest that heatmaps may take
_MODULES: Final = 400  # of the tree
_HERE: Final = Place("run")  # nothing is chosen


def write_report(run: AnyRun, to: str | Path, *, pictures: bool = False) -> Path:
    """Write the report of a run: see `nethook.figures.report`."""
    from plotly.offline import get_plotlyjs

    reading = Reading(run)
    script = get_plotlyjs()
    chapters = contents(reading, SIZE - len(script.encode("utf-8")), pictures=pictures)
    return write_whole(Path(to), page(reading.run.path.stem, chapters, script))


def contents(reading: Reading, room: int, *, pictures: bool = False) -> list[Chapter]:
    """What a report of at most `room` bytes, without plotly.js, shows.

    Arguments:
        reading: the run.
        room: bytes.
        pictures: whether snapshots of outputs are shown, and figures of studies that show inputs:
            data may be recognized in them.
    """
    anchors = {address: f"layer-{index}" for index, address in enumerate(reading.layers())}
    subject = Subject(reading, ReportLinks(anchors), reading.run.path.stem)
    room -= len(page("", [], "").encode("utf-8")) + _ROOM
    first = made(verdict(subject, MOST))
    about = [made(ran(subject)), made(cost(subject))]
    middle = [made(loop(subject, _HERE)), made(all_depths(subject)), made(model(subject, _MODULES))]
    room -= sum(each.size for each in (first, *about, *middle))
    shown = _pictures(subject, int(room * _PICTURES)) if pictures else None
    room -= 0 if shown is None else sum(each.size for each in shown.sections)
    path = reading.run.path
    studied = studies_beside(path, int(room * _STUDIES), pictures=pictures)
    room -= 0 if studied is None else sum(each.size for each in studied.sections)
    found = _findings(subject, room)
    room -= found.size
    heatmaps = _heatmaps(subject, int(room * _HEATMAPS))
    room -= heatmaps.size
    layers, note = layers_within(subject, room)
    curves, depths, tree = middle
    chapters = [Chapter("verdict", "Verdict", [first])]
    if reading.findings:
        chapters.append(Chapter("findings", "Findings", [found]))
    overview = [curves, heatmaps, depths, tree]
    chapters.append(Chapter("overview", "Overview", overview))
    chapters.append(Chapter("layers", "Layers", layers, "Every layer", note, filtered=bool(layers)))
    chapters += [chapter for chapter in (shown, studied) if chapter is not None]
    return [*chapters, Chapter("about", "What ran", about)]


def _pictures(subject: Subject, room: int) -> Chapter | None:
    """Snapshots of as many layers as there is room for; None where the run has none."""
    found = [made(section, heading="h3") for section in all_pictures(subject)]
    if not found:
        return None
    kept: list[Made] = []
    for each in found:
        if each.size <= room:
            room -= each.size
            kept.append(each)
    left = len(found) - len(kept)
    note = f"{left} of {len(found)} layers are left out: a report has at most 8 MB." if left else ""
    return Chapter("pictures", "Pictures", kept, "Snapshots", note)


def _findings(subject: Subject, room: int) -> Made:
    """Findings with their figures, the worst first, as long as there is room for them."""
    left = int(room * _FINDINGS) - made(findings(subject, drawn=())).size
    everything = findings(subject, drawn=[each.anchor for each in subject.reading.findings])
    figures: dict[str, Drawing] = {}
    for name, drawing in everything.figures.items():
        spec = drawing.make()
        size = len(script_json(payload(spec))) + 300 if spec is not None else 0
        if spec is not None and size <= left:
            left -= size
            figures[name] = Drawing.ready(spec)
    return made(replace(everything, figures=figures))


def _heatmaps(subject: Subject, room: int) -> Made:
    """A heatmap a quantity, with so many columns that all fit."""
    grids = subject.reading.grids().values()
    cells = sum(len(grid.rows) * (1 if grid.least is grid.greatest else 3) for grid in grids)
    fitting = int(room / 1.4 / max(1, cells))
    return made(all_layers(subject, max(40, min(COLUMNS, fitting))))
