"""The verdict on a run: in a word, what it rests on, what was found with its fix, and numbers."""

from __future__ import annotations

from typing import Any, Final

from nethook.doctor.verdict import verdict_of
from nethook.page.section import Section, Subject
from nethook.page.sections.about import facts_of, subtitle_of
from nethook.runs.names import NON_FINITE
from nethook.text.escape import shorten
from nethook.text.non_finite import non_finite_line
from nethook.text.numbers import count
from nethook.text.paragraphs import capitalized

MOST: Final = 8
"""Findings in the strip of the page; the view of findings has all."""
_LONGEST: Final = 400  # characters of what an event says


def verdict(subject: Subject, most: int = MOST) -> Section:
    """The section of the verdict."""
    return Section("verdict", f"{subject.tag} {most}", lambda: _data(subject, most))


def _data(subject: Subject, most: int) -> dict[str, Any]:
    reading = subject.reading
    said = verdict_of(reading.run)
    is_found = said.state == "findings"
    states = [rank.state for rank in reading.ranks]
    notes = [] if is_found else [f"{capitalized(said.why)}."]
    if "open" in states and not subject.live:
        notes.append("The run was still being written when this was made.")
    elif "died" in states and "open" not in states:
        notes.append("The writer has gone: its process ended without closing the run.")
    if gone := sum(state in ("missing", "unreadable") for state in states):
        notes.append(f"{gone} of {count(len(states), 'rank')} are missing.")
    events = reading.run.events
    if first := next((event for event in events if event.kind == NON_FINITE), None):
        line = non_finite_line(first.step, first.address, first.message, first.data)
        notes.append(capitalized(shorten(line, _LONGEST)))
    findings = reading.findings
    if len(findings) > most and not subject.live:
        notes.append(f"Of {len(findings):,} findings the first {most} are shown.")
    return {
        "title": subject.name,
        "subtitle": subtitle_of(reading),
        "word": capitalized(said.why if is_found else said.state),
        "kind": "" if said.severity == "quiet" else said.severity,
        "notes": notes,
        "rows": [(finding, subject.links.finding(finding.anchor)) for finding in findings[:most]],
        "more": max(0, len(findings) - most) if subject.live else 0,
        "all": subject.links.view("findings"),
        "facts": facts_of(reading),
    }
