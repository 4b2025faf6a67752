"""Findings as plain data, read with care: what is missing or odd is left out, never guessed."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from nethook.text.numbers import count
from nethook.text.tried_lines import tried_by_code

_LONGEST: Final = 2000  # characters of a message or a fix that are shown

_PLACES: Final = 3  # lines of the script that are shown

SEVERITIES: Final = ("error", "warning", "info")
"""From the worst."""


class Evidence(NamedTuple):
    """A number, and the threshold it was held against; `quantity` where a figure can show it."""

    name: str
    value: Any
    threshold: float | None = None
    quantity: str = ""


class Consequence(NamedTuple):
    """What follows from a finding."""

    code: str
    message: str

    def __str__(self) -> str:
        return ": ".join(text for text in (self.code, self.message) if text)


class Finding(NamedTuple):
    """A finding of a run, with every field in a known form."""

    code: str
    severity: str
    message: str
    fix: str
    sites: tuple[str, ...]
    first_step: int | None
    last_step: int | None
    evidence: tuple[Evidence, ...]
    consequences: tuple[Consequence, ...]
    anchor: str
    lines: tuple[str, ...] = ()
    tried: str = ""  # what came of trying its fix


def read_findings(stored: Sequence[Mapping[str, Any]], tried: Any = None) -> list[Finding]:
    """Findings of a run file, the worst first; within a severity as the doctor has them.

    `tried` is the run's fact of this name: the fixes that were tried.
    """
    outcomes = tried_by_code(tried)
    read = [read_finding(finding, number, outcomes) for number, finding in enumerate(stored)]
    return sorted(read, key=lambda finding: _rank(finding.severity))


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def read_finding(
    stored: Mapping[str, Any], number: int = 0, tried: Mapping[str, str] | None = None
) -> Finding:
    """One finding of a run file, or of `Finding.to_dict`.

    `number` makes its anchor in a page; `tried` is what came of trying a fix, by code.
    """
    severity = str(stored.get("severity", "info"))
    code = str(stored.get("code", "finding"))
    return Finding(
        code,
        severity if severity in SEVERITIES else "info",
        _text(stored.get("message")),
        _text(stored.get("fix")),
        tuple(str(site) for site in _list(stored.get("sites")))[:1000],
        _step(stored.get("first_step")),
        _step(stored.get("last_step")),
        tuple(read_evidence(stored.get("evidence"))),
        tuple(_consequence(value) for value in _list(stored.get("consequences")))[:100],
        f"finding-{number}",
        tuple(_text(line) for line in _list(stored.get("lines")))[:20],
        (tried or {}).get(code, ""),
    )


def read_evidence(evidence: Any) -> list[Evidence]:
    """Evidence as `{name: number}`, `{name: {value, threshold}}` or a list of `{name, …}`."""
    if isinstance(evidence, Mapping):
        entries = [(str(name), entry) for name, entry in evidence.items()]
    else:
        entries = [
            (str(entry.get("name", "")), entry)
            for entry in _list(evidence)
            if isinstance(entry, Mapping)
        ]
    read = []
    for name, entry in entries[:50]:
        if isinstance(entry, Mapping):
            threshold = entry.get("threshold", entry.get("limit"))
            number = threshold if _is_number(threshold) else None
            shown = entry.get("quantity")
            read.append(Evidence(name, entry.get("value"), number, str(shown) if shown else ""))
        else:
            read.append(Evidence(name, entry))
    return read


def verdict(findings: Sequence[Finding]) -> str:
    """The verdict in a few words: `2 errors, 1 warning`, or `no findings`."""
    parts = []
    for severity in SEVERITIES:
        number = sum(finding.severity == severity for finding in findings)
        if number:
            parts.append(count(number, {"info": "note"}.get(severity, severity)))
    return ", ".join(parts) or "no findings"


def when(finding: Finding) -> str:
    """`since step 120`, `steps 120 to 400`."""
    if finding.first_step is None:
        return ""
    if finding.last_step is None or finding.last_step == finding.first_step:
        return f"at step {finding.first_step:,}"
    return f"steps {finding.first_step:,} to {finding.last_step:,}"


def places(finding: Finding) -> list[str]:
    """The first lines of the script that it is about, as one would type their paths here."""
    try:
        folder = f"{Path.cwd()}{os.sep}"
    except OSError:  # it was removed
        return list(finding.lines[:_PLACES])
    return [line.removeprefix(folder) for line in finding.lines[:_PLACES]]


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _list(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value is None else [value]


def _step(value: Any) -> int | None:
    if not _is_number(value) or not math.isfinite(value) or abs(value) > 1 << 53:
        return None
    return int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _consequence(value: Any) -> Consequence:
    if isinstance(value, Mapping):
        return Consequence(_text(value.get("code")), _text(value.get("message")))
    return Consequence("", _text(value))
