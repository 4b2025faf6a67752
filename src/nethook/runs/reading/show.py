"""A run and its findings as tables, for a notebook and a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nethook.text.escape import html_text, shorten
from nethook.text.findings import read_findings, verdict, when
from nethook.text.numbers import count
from nethook.text.table import Table

_LONG: Final = 240  # characters of a message or a fix
_KERNEL: Final = "ipykernel_launcher.py"  # what a notebook runs in


def windows_in_words(phase: str, windows: int, steps: int) -> str:
    """`600 steps in 46 windows`, `6 windows of evaluation`."""
    spans = count(windows, "window")
    if phase == "train":
        return f"{count(steps, 'step')} in {spans}"
    return f"{spans} of {'evaluation' if phase == 'eval' else 'other passes'}"


def findings_table(findings: Sequence[Mapping[str, Any]]) -> Table:
    """Findings, the worst first: what, where, since when, and the fix."""
    read = read_findings(findings)
    rows = [
        (
            finding.severity,
            shorten(finding.code, 40),
            shorten(", ".join(finding.sites[:4]) + (", …" if len(finding.sites) > 4 else ""), 60),
            when(finding),
            _begin(finding.message),
            _begin(finding.fix),
        )
        for finding in read
    ]
    columns = ("severity", "code", "where", "when", "what", "fix")
    return Table(verdict(read), columns, rows)


def _begin(text: str) -> str:
    """The beginning of a text, up to the end of a word."""
    return text if len(text) <= _LONG else f"{text[:_LONG].rpartition(' ')[0]} …"


def run_html(
    shown: str, info: Mapping[str, Any], findings: Sequence[Mapping[str, Any]], ranks: Sequence[Any]
) -> str:
    """A run in a notebook: what it is, what was found, which ranks it has."""
    parts = [f"<div><code>{html_text(shown)}</code></div>"]
    command = info.get("command")
    if isinstance(command, list | str):
        text = (
            command if isinstance(command, str) else " ".join(str(argument) for argument in command)
        )
        if _KERNEL not in text:  # nobody has typed that
            parts.append(f"<div>{html_text(shorten(text, 200))}</div>")
    parts.append(findings_table(findings).html())
    if len(ranks) > 1:
        rows = [(str(r.rank), r.state, f"{r.last_step:,}", shorten(r.problem, 80)) for r in ranks]
        parts.append(Table("ranks", ("rank", "state", "last step", "problem"), rows).html())
    return "".join(parts)
