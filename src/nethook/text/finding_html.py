"""Findings as HTML for a cell of a notebook: no script, no style sheet, either theme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nethook.text.escape import html_prose, html_text
from nethook.text.findings import Finding, places, read_finding, when
from nethook.text.numbers import ascii_number
from nethook.text.tried_lines import tried_by_code

MOST: Final = 50
"""Findings that are shown."""
# Readable on a light and on a dark background.
_COLOURS: Final = {"error": "#d55e00", "warning": "#b07400", "info": "#2f86c8", "good": "#2e9f5b"}
_GREY: Final = "#7a828e"


def findings_html(
    findings: Sequence[Mapping[str, Any]], verdict: str, severity: str, tried: Any = None
) -> str:
    """The verdict, and each finding with its fix; evidence and consequences fold out.

    Arguments:
        findings: as plain data.
        verdict: what may be said of the run as a whole.
        severity: of the verdict: `error`, `warning`, `info`, `good` or `quiet`.
        tried: the run's fact of this name: the fixes that were tried.
    """
    outcomes = tried_by_code(tried)
    read = [read_finding(stored, tried=outcomes) for stored in findings]
    colour = _COLOURS.get(severity, _GREY)
    parts = [f'<p style="margin:0 0 .5em"><b style="color:{colour}">{html_text(verdict)}</b></p>']
    parts += [part for finding in read[:MOST] for part in _finding(finding)]
    if len(read) > MOST:
        parts.append(f"<p>and {len(read) - MOST} more</p>")
    return f'<div style="max-width:60em;line-height:1.45">{"".join(parts)}</div>'


def _finding(finding: Finding) -> Iterator[str]:
    colour = _COLOURS.get(finding.severity, _GREY)
    where = ", ".join(finding.sites[:3])
    if len(finding.sites) > 3:
        where += f" and {len(finding.sites) - 3} more"
    about = "; ".join(filter(None, [where, when(finding)]))
    yield (
        f'<div style="border-left:3px solid {colour};padding:0 0 0 .8em;margin:0 0 1em">'
        f'<b style="color:{colour}">{finding.severity}</b> <b>{html_text(finding.code)}</b>'
        f' <span style="color:{_GREY}">{html_text(about)}</span><br>{html_prose(finding.message)}'
    )
    for label, text in (
        ("at", ", ".join(places(finding))),
        ("fix", finding.fix),
        ("tried", finding.tried),
    ):
        if text:
            yield f"<br><b>{label}:</b> {html_prose(text)}"
    if finding.evidence or finding.consequences:
        head = f'<summary style="color:{_GREY}">evidence</summary>'
        yield f"<details>{head}{_details(finding)}</details>"
    yield "</div>"


def _details(finding: Finding) -> str:
    rows = []
    for evidence in finding.evidence:
        limit = "" if evidence.threshold is None else f"limit {ascii_number(evidence.threshold, 4)}"
        cells = (evidence.name, ascii_number(evidence.value, 4), limit)
        rows.append(
            "".join(f'<td style="text-align:left">{html_text(cell)}</td>' for cell in cells)
        )
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    leads = ", ".join(effect.code for effect in finding.consequences if effect.code)
    more = f"leads to: {html_text(leads)}" if leads else ""
    return f"<table>{table}</table>{more}" if rows else more
