"""The model as a tree: modules, what they return, their parameters, what was found in them."""

from __future__ import annotations

from typing import Any, Final

from nethook.drawing.data import Row
from nethook.figures.site_order import tree_rows
from nethook.page.section import Section, Subject
from nethook.text.findings import Finding

MOST: Final = 3000
"""Modules that are shown."""
_OPEN: Final = 60  # up to so many modules all are open


def model(subject: Subject, most: int = MOST) -> Section:
    """The section of the model."""
    return Section("model", subject.tag, lambda: _data(subject, most))


def _data(subject: Subject, most: int) -> dict[str, Any]:
    rows = tree_rows(subject.reading.order)
    shown = rows[:most]
    layers = set(subject.reading.layers())
    told: dict[str, list[Finding]] = {}
    for finding in subject.reading.findings:
        for site in finding.sites[:100]:
            told.setdefault(site, []).append(finding)
    total = max([1, *(row.parameters for row in shown)])
    lines = [_line(subject, row, layers, told, total) for row in shown]
    everything = len(shown) <= _OPEN
    return {"nodes": _nested(lines, everything), "left_out": len(rows) - len(shown)}


def _line(
    subject: Subject, row: Row, layers: set[str], told: dict[str, list[Finding]], total: int
) -> dict[str, Any]:
    return {
        "name": row.address.rpartition(".")[2] or "(model)",
        "to": subject.links.layer(row.address) if row.address in layers else "",
        "kind": row.kind,
        "about": row.shape or row.note,
        "count": f"{row.parameters:,}" if row.parameters else "",
        "wide": f"{max(1.0, 100 * row.parameters / total):.1f}" if row.parameters else "0",
        "findings": [
            (finding, subject.links.finding(finding.anchor))
            for finding in told.get(row.address, [])[:3]
        ],
        "depth": row.depth,
        "inside": [],
        "open": row.depth < 2,
    }


def _nested(lines: list[dict[str, Any]], everything: bool) -> list[dict[str, Any]]:
    """Each line with those that are deeper right after it inside of it."""
    roots: list[dict[str, Any]] = []
    around: list[dict[str, Any]] = []
    for line in lines:
        line["open"] = everything or line["open"]
        while around and around[-1]["depth"] >= line["depth"]:
            around.pop()
        (around[-1]["inside"] if around else roots).append(line)
        around.append(line)
    return roots
