"""The page of a report: plain data to one HTML file that needs nothing but a browser.

Every text is escaped where it is put in. A content security policy names the two scripts of the
page by their hashes and forbids all requests, so that even a text that escaped escaping could
neither run nor reach anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from nethook.drawing.data import Spec
from nethook.drawing.palette import THEMES, template
from nethook.drawing.render import dark_colours, payload
from nethook.page.sections.layer_details import Layer
from nethook.text.escape import html_text, script_json, shorten
from nethook.text.findings import Evidence, Finding, when
from nethook.text.findings import places as lines_of
from nethook.text.numbers import number


@dataclass(frozen=True)
class Tab:
    """One of several figures in one place."""

    name: str
    explain: str
    spec: Spec = field(repr=False)


@dataclass(frozen=True)
class Report:
    """All that a report shows."""

    title: str
    subtitle: str
    verdict: str
    severity: str  # of the worst finding; "good" where a diagnosis found none; ""
    note: str
    facts: Sequence[tuple[str, str]]
    findings: Sequence[tuple[Finding, Sequence[Spec]]]
    overview: Spec | None
    tabs: Sequence[Tab]
    depth: Sequence[Tab]
    tree: Spec | None
    layers: Sequence[Layer]
    layers_note: str
    events: Sequence[tuple[str, str, str, str]]
    ran: Sequence[tuple[str, str]]


class _Figures:
    """The figures of a page: each is a div, and its data a script of JSON further down."""

    def __init__(self) -> None:
        self.data: list[tuple[str, str]] = []

    def add(self, spec: Spec, label: str) -> str:
        name = f"figure-{len(self.data)}"
        self.data.append((name, script_json(payload(spec))))
        height = int(spec["layout"].get("height", 300))
        return (
            f'<div class="figure" role="group" aria-label="{html_text(shorten(label, 120))}" '
            f'data-figure="{name}" data-drawn="no" style="height:{height}px"></div>'
        )

    def scripts(self) -> str:
        return "\n".join(
            f'<script type="application/json" id="{name}">{data}</script>'
            for name, data in self.data
        )


def page(report: Report, plotly_js: str) -> str:
    """The HTML of a report. `plotly_js` is put in as it is, once."""
    script = asset("draw.js") + asset("report.js")
    figures = _Figures()
    body = "\n".join(_body(report, figures))
    policy = (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; font-src data:; "
        f"script-src '{_hash(plotly_js)}' '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html_text(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{html_text(report.title)} – nethook</title>
<link rel="icon" href="data:,">
<style>{asset("report.css")}</style>
</head>
<body>
{body}
<script type="application/json" id="nh-looks">{looks()}</script>
{figures.scripts()}
<script>{plotly_js}</script>
<script>{script}</script>
</body>
</html>
"""


def looks() -> str:
    """The templates of both themes, as the JSON that `draw.js` reads."""
    settings = {"templates": {theme: template(theme) for theme in THEMES}, "dark": dark_colours()}
    return script_json(settings)


def layer_id(index: int) -> str:
    """The anchor of the layer with this number."""
    return f"layer-{index}"


def asset(name: str) -> str:
    """A stylesheet or script of this room."""
    return resources.files("nethook.page").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _body(report: Report, figures: _Figures) -> Iterator[str]:
    links = [("findings", "Findings")] if report.findings else []
    links += [("overview", "Overview")]
    links += [("layers", "Layers")] if report.layers or report.layers_note else []
    links += [("about", "What ran")] if report.ran else []
    nav = "".join(f'<a href="#{anchor}">{name}</a>' for anchor, name in links)
    yield (
        f'<header class="bar"><span class="brand">nethook</span><nav aria-label="Sections">{nav}'
        '</nav><button id="theme" type="button" aria-label="Switch between light and dark">'
        "◐</button></header>"
    )
    yield "<main>"
    yield (
        "<noscript><p>The figures are drawn by JavaScript, which is off here. All texts and tables "
        "are complete without it.</p></noscript>"
    )
    yield f"<h1>{html_text(report.title)}</h1>"
    yield f'<p class="sub">{html_text(report.subtitle)}</p>'
    yield from _verdict(report)
    places = {layer.address: layer_id(index) for index, layer in enumerate(report.layers)}
    if report.findings:
        yield '<section id="findings"><h2>Findings</h2>'
        for finding, specs in report.findings:
            yield _finding(finding, specs, places, figures)
        yield "</section>"
    yield '<section id="overview"><h2>Overview</h2>'
    if report.overview is not None:
        drawn = figures.add(report.overview, "Loss and gradients over steps")
        yield f'<div class="card">{drawn}</div>'
    yield from _tabs("Layers over steps", "heatmap", report.tabs, figures)
    yield from _tabs("Layers over depth", "depth", report.depth, figures)
    if report.tree is not None:
        drawn = figures.add(report.tree, "The model's modules")
        yield (
            '<details class="card plain"><summary>The model: modules, shapes, parameters</summary>'
            f"{drawn}</details>"
        )
    yield "</section>"
    yield from _layers(report, figures)
    yield from _about(report)
    yield "<footer>Written by nethook. This file works without network and sends nothing.</footer>"
    yield "</main>"


def _verdict(report: Report) -> Iterator[str]:
    yield f'<section class="card verdict {report.severity}" id="verdict" aria-label="Verdict">'
    yield f'<div class="word">{html_text(report.verdict)}</div>'
    if report.note:
        yield f'<div class="note">{html_text(report.note)}</div>'
    if report.findings:
        yield "<ol>"
        for finding, _ in report.findings:
            yield (
                f'<li><a href="#{html_text(finding.anchor)}">{_badge(finding)}'
                f'<span class="what">{html_text(finding.message or finding.code)}</span>'
                f'<span class="when">{html_text(when(finding))}</span></a></li>'
            )
        yield "</ol>"
    yield '<dl class="facts">'
    for name, value in report.facts:
        yield f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>"
    yield "</dl></section>"


def _badge(finding: Finding) -> str:
    return (
        f'<span class="badge {html_text(finding.severity)}">'
        f"{html_text(finding.severity)} · {html_text(shorten(finding.code, 48))}</span>"
    )


def _finding(
    finding: Finding, specs: Sequence[Spec], places: dict[str, str], figures: _Figures
) -> str:
    time = f'<span class="when">{html_text(when(finding))}</span>'
    parts = [f'<div class="head">{_badge(finding)}{time}</div>']
    parts.append(f"<p>{_lines(finding.message)}</p>")
    if finding.lines:
        where = ", ".join(f"<code>{html_text(place)}</code>" for place in lines_of(finding))
        parts.append(f'<p class="note">{where}</p>')
    if finding.sites:
        shown = [_site(site, places) for site in finding.sites[:12]]
        if len(finding.sites) > 12:
            shown.append(f'<span class="note">and {len(finding.sites) - 12} more</span>')
        parts.append(f'<div class="chips">{"".join(shown)}</div>')
    if finding.fix:
        parts.append(f'<p class="fix"><b>Fix</b> {_lines(finding.fix)}</p>')
    if finding.tried:
        parts.append(f"<p><b>Tried</b> {_lines(finding.tried)}</p>")
    if finding.evidence:
        parts.append(_evidence(finding.evidence))
    if finding.consequences:
        told = finding.consequences[:20]
        rest = "".join(f"<li>{html_text(shorten(str(text), 300))}</li>" for text in told)
        parts.append(
            '<details class="plain"><summary>What follows from it '
            f"({len(finding.consequences)})</summary><ul>{rest}</ul></details>"
        )
    drawn = "".join(figures.add(spec, f"What shows {finding.code}") for spec in specs)
    beside = f"<div>{drawn}</div>" if drawn else ""
    kind = "card finding" if drawn else "card finding alone"
    return (
        f'<article class="{kind}" id="{html_text(finding.anchor)}">'
        f"<div>{''.join(parts)}</div>{beside}</article>"
    )


def _site(site: str, places: dict[str, str]) -> str:
    name = html_text(shorten(site or "(model)", 60))
    if site in places:
        return f'<a class="chip address" href="#{places[site]}">{name}</a>'
    return f'<span class="chip address">{name}</span>'


def _evidence(evidence: Sequence[Evidence]) -> str:
    rows = "".join(
        f"<tr><td>{html_text(shorten(row.name.replace('_', ' '), 60))}</td>"
        f'<td class="right">{html_text(_value(row.value))}</td>'
        f'<td class="right">{html_text(_value(row.threshold))}</td></tr>'
        for row in evidence
    )
    head = '<tr><th>evidence</th><th class="right">found</th><th class="right">threshold</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shorten(value, 80)
    return f"{value:,}" if isinstance(value, int) else number(value, 4)


def _lines(text: str) -> str:
    return html_text(text).replace("\n", "<br>")


def _tabs(title: str, prefix: str, tabs: Sequence[Tab], figures: _Figures) -> Iterator[str]:
    if not tabs:
        return
    yield f'<div class="card"><h3>{html_text(title)}</h3>'
    yield f'<div class="tabs" role="tablist" aria-label="{html_text(title)}">'
    for index, tab in enumerate(tabs):
        chosen = index == 0
        yield (
            f'<button role="tab" type="button" id="tab-{prefix}-{index}" '
            f'aria-controls="{prefix}-{index}" aria-selected="{str(chosen).lower()}" '
            f'tabindex="{0 if chosen else -1}">'
            f"{html_text(tab.name)}</button>"
        )
    yield "</div>"
    for index, tab in enumerate(tabs):
        hidden = "" if index == 0 else " hidden"
        yield (
            f'<div role="tabpanel" id="{prefix}-{index}" '
            f'aria-labelledby="tab-{prefix}-{index}"{hidden}>'
            f'<p class="explain">{html_text(tab.explain)}</p>'
            f"{figures.add(tab.spec, f'{title}: {tab.name}')}</div>"
        )
    yield "</div>"


def _layers(report: Report, figures: _Figures) -> Iterator[str]:
    if not report.layers and not report.layers_note:
        return
    yield '<section id="layers"><h2>Every layer</h2>'
    if report.layers:
        yield (
            '<div class="tools"><input id="filter" type="search" placeholder="Filter by name" '
            'aria-label="Filter layers by name">'
            '<button id="open-all" type="button">open all</button></div>'
        )
    if report.layers_note:
        yield f'<p class="note">{html_text(report.layers_note)}</p>'
    for index, layer in enumerate(report.layers):
        name = html_text(shorten(layer.address or "(model)", 80))
        full = shorten(layer.address, 200)
        badges = "".join(
            f'<span class="badge {html_text(finding.severity)}">'
            f"{html_text(shorten(finding.code, 32))}</span> "
            for finding in layer.findings[:3]
        )
        links = "".join(
            f'<a class="chip" href="#{html_text(finding.anchor)}">'
            f"finding: {html_text(shorten(finding.code, 48))}</a>"
            for finding in layer.findings[:12]
        )
        drawn = "".join(
            f'<div class="{"wide" if wide else "half"}">{figures.add(spec, layer.address)}</div>'
            for wide, spec in layer.specs
        )
        facts = "".join(
            f"<div><dt>{html_text(shorten(what, 40))}</dt>"
            f"<dd>{html_text(shorten(value))}</dd></div>"
            for what, value in layer.facts
        )
        yield (
            f'<details class="layer" id="{layer_id(index)}" data-name="{html_text(full)}">'
            f'<summary><span class="address">{name}</span>'
            f"<span>{html_text(shorten(layer.kind, 48))}</span>"
            f"<span>{html_text(layer.shape)}</span>"
            f'<span class="numbers">{badges}{html_text(layer.numbers)}</span></summary>'
            f'<div class="inside"><div class="chips wide">{links}</div>'
            f'<dl class="facts wide">{facts}</dl>{drawn}</div></details>'
        )
    yield "</section>"


def _about(report: Report) -> Iterator[str]:
    if not report.ran:
        return
    yield '<section id="about"><h2>What ran</h2><div class="card"><table><tbody>'
    for name, value in report.ran:
        cell = f'<td class="mono">{_lines(value)}</td>'
        yield f'<tr><th scope="row">{html_text(name)}</th>{cell}</tr>'
    yield "</tbody></table></div>"
    if report.events:
        yield f'<details class="card plain"><summary>Events ({len(report.events)})</summary><table>'
        yield "<thead><tr><th>step</th><th>kind</th><th>site</th><th>what</th></tr></thead><tbody>"
        for row in report.events:
            cells = "".join(f"<td>{html_text(shorten(cell, 300))}</td>" for cell in row)
            yield f"<tr>{cells}</tr>"
        yield "</tbody></table></details>"
    yield "</section>"
