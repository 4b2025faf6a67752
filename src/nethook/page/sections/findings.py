"""The findings of a run: what, since when, how it is known (drawn), and what to change."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from nethook.doctor.verdict import verdict_of
from nethook.drawing.data import Spec
from nethook.figures.evidence import finding_specs
from nethook.figures.reading import Reading
from nethook.page.section import Drawing, Section, Subject
from nethook.text.findings import Finding
from nethook.text.findings import places as lines_of
from nethook.text.findings import verdict as counted
from nethook.text.paragraphs import capitalized

MOST: Final = 200
"""Findings that are shown."""
_DRAWN: Final = 12  # findings whose evidence is drawn at once
_FIGURES: Final = 2  # that a finding has at most
_SITES: Final = 12


def findings(subject: Subject, wanted: str = "", drawn: Collection[str] | None = None) -> Section:
    """The section of findings.

    Arguments:
        subject: the run.
        wanted: the anchor of the finding to look at.
        drawn: the anchors of those with figures; None for the first of them and the wanted one.
    """
    shown = subject.reading.findings[:MOST]
    if drawn is None:
        drawn = {finding.anchor for finding in shown[:_DRAWN]} | {wanted}
    figures = {
        name: Drawing(subject.tag, _drawer(subject.reading, finding, index))
        for finding in shown
        if finding.anchor in drawn
        for index, name in enumerate(figures_of(finding))
    }
    tag = repr((subject.tag, wanted, sorted(figures)))
    return Section("findings", tag, lambda: _data(subject, wanted, set(figures)), figures)


def figures_of(finding: Finding) -> list[str]:
    """The names of a finding's figures."""
    return [f"{finding.anchor}-figure-{index}" for index in range(_FIGURES)]


def _drawer(reading: Reading, finding: Finding, index: int) -> Callable[[], Spec | None]:
    def draw() -> Spec | None:
        specs = finding_specs(reading, finding)
        return specs[index] if index < len(specs) else None

    return draw


def _data(subject: Subject, wanted: str, named: set[str]) -> dict[str, Any]:
    reading = subject.reading
    said = verdict_of(reading.run)
    return {
        "verdict": None if reading.findings else said,
        "why": f"{capitalized(said.why)}.",
        "counted": capitalized(counted(reading.findings)),
        "left_out": max(0, len(reading.findings) - MOST),
        "most": MOST,
        "wanted": wanted,
        "rows": [_row(subject, finding, named) for finding in reading.findings[:MOST]],
    }


def _row(subject: Subject, finding: Finding, named: set[str]) -> dict[str, Any]:
    step = finding.first_step
    return {
        "finding": finding,
        "figures": [name for name in figures_of(finding) if name in named],
        "lines": lines_of(finding),
        "sites": [(site, subject.links.layer(site, step=step)) for site in finding.sites[:_SITES]],
        "more_sites": max(0, len(finding.sites) - _SITES),
    }
