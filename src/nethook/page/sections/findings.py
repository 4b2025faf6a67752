"""The findings of a run: what, since when, how it is known (drawn), and what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dash import html

from nethook.doctor.verdict import verdict_of
from nethook.drawing.data import Spec
from nethook.figures.evidence import finding_specs
from nethook.figures.reading import Reading
from nethook.page.folder import Opened
from nethook.page.html import (
    Node,
    Part,
    Shown,
    address,
    attributes,
    figure,
    lines,
    note,
    place,
    said,
    severity_badge,
    table,
    time_of,
)
from nethook.page.sections.overview import layer_link
from nethook.page.urls import Place
from nethook.text.findings import Evidence, Finding
from nethook.text.findings import places as lines_of
from nethook.text.findings import verdict as counted
from nethook.text.numbers import number
from nethook.text.paragraphs import capitalized

_DRAWN: Final = 12  # findings whose evidence is drawn
_MOST: Final = 200
_SITES: Final = 12


def findings(opened: Opened, reading: Reading, where: Place) -> Shown:
    """The view of findings; `n` is the one to look at."""
    findings = reading.findings[:_MOST]
    wanted = f"finding-{where.text('n')}"
    cards: list[Node] = []
    parts: dict[str, Part] = {}
    drawn = [finding.anchor for finding in findings[:_DRAWN]]
    drawn += [
        finding.anchor
        for finding in findings
        if finding.anchor == wanted and finding.anchor not in drawn
    ]
    for finding in findings:
        beside: list[Node] = []
        if finding.anchor in drawn:
            names = [f"{finding.anchor}-figure-{index}" for index in range(2)]
            shown = [figure(name, f"What shows {said(finding.code, 60)}", 260) for name in names]
            beside = [html.Div(shown)]
            for index, name in enumerate(names):
                parts[name] = Part(opened.tag, _drawer(reading, finding, index), figure=True)
        here = " here" if finding.anchor == wanted else ""
        kind = f"card finding{'' if beside else ' alone'}"
        text = place(f"{finding.anchor}-text")
        parts[f"{finding.anchor}-text"] = Part(opened.tag, _teller(opened, reading, finding))
        cards.append(
            html.Article([text, *beside], className=f"{kind}{here}", id=finding.anchor, tabIndex=-1)
        )
    parts["head"] = Part(opened.tag, lambda: _head(reading))
    parts["focus"] = Part(wanted, lambda: html.Span(**attributes(data_focus=wanted)))
    body = [html.H1("Findings"), place("head"), *cards, place("focus", className="hidden")]
    # Another finding is another card, so the skeleton is another.
    key = repr([finding.anchor for finding in findings] + drawn)
    return Shown("Findings – nethook", body, parts, key)


def _head(reading: Reading) -> Node:
    if not reading.findings:
        verdict = verdict_of(reading.run)
        word, text = capitalized(verdict.state), capitalized(verdict.why) + "."
        kind = "card verdict good" if verdict.is_fine else "card verdict"
        return html.Div([html.Div(word, className="word"), note(text)], className=kind)
    more = ""
    if len(reading.findings) > _MOST:
        more = f"; the first {_MOST} are shown"
    return html.P(f"{capitalized(counted(reading.findings))}{more}.", className="sub")


def _drawer(reading: Reading, finding: Finding, index: int) -> Callable[[], Any]:
    def draw() -> Spec | None:
        specs = finding_specs(reading, finding)
        return specs[index] if index < len(specs) else None

    return draw


def _teller(opened: Opened, reading: Reading, finding: Finding) -> Callable[[], Any]:
    return lambda: told(opened, reading, finding)


def told(opened: Opened, reading: Reading, finding: Finding) -> Node:
    """A finding in words."""
    nodes: list[Node] = [
        html.Div([severity_badge(finding), time_of(finding)], className="head"),
        html.P(lines(finding.message)),
    ]
    if finding.lines:
        where = [html.Code(said(line, 300)) for line in lines_of(finding)]
        nodes.append(html.Div(where, className="chips"))
    if finding.sites:
        step = finding.first_step
        chips = [
            address(site, layer_link(opened, reading, site, step=step))
            for site in finding.sites[:_SITES]
        ]
        if len(finding.sites) > _SITES:
            chips.append(html.Span(f"and {len(finding.sites) - _SITES} more", className="note"))
        nodes.append(html.Div(chips, className="chips"))
    if finding.fix:
        nodes.append(html.P([html.B("Fix "), *lines(finding.fix)], className="fix"))
    if finding.tried:
        nodes.append(html.P([html.B("Tried "), *lines(finding.tried)]))
    if finding.evidence:
        nodes.append(_evidence(finding.evidence))
    if finding.consequences:
        rest = [html.Li(said(str(text), 300)) for text in finding.consequences[:20]]
        head = html.Summary(f"What follows from it ({len(finding.consequences)})")
        nodes.append(html.Details([head, html.Ul(rest)], className="plain"))
    return nodes


def _evidence(evidence: tuple[Evidence, ...]) -> Node:
    rows = [
        [said(row.name.replace("_", " "), 60), value(row.value), value(row.threshold)]
        for row in evidence
    ]
    return table(("evidence", "found", "threshold"), rows, right=(1, 2))


def value(measured: object) -> str:
    """A piece of evidence as people read it."""
    if measured is None:
        return ""
    if isinstance(measured, bool) or not isinstance(measured, int | float):
        return said(measured, 80)
    return f"{measured:,}" if isinstance(measured, int) else number(measured, 4)
