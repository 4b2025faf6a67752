"""Findings as annotations of a GitHub workflow.

    ::error file=train.py,line=42,title=nethook%3A dead-units::60 of 64 units are silent. …

A workflow prints these lines, and the code host shows each beside the line that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nethook.exporting.ci.places import places_of
from nethook.text.findings import Finding

_COMMANDS: Final = {"error": "error", "warning": "warning", "info": "notice"}


def github_annotations(findings: Sequence[Finding], verdict: str) -> str:
    """One annotation per finding; a notice with the verdict where there is none."""
    if not findings:
        return f"::notice title=nethook::{_message(verdict)}"
    return "\n".join(_annotation(finding) for finding in findings)


def _annotation(finding: Finding) -> str:
    properties = {"title": f"nethook: {finding.code}"}
    if places := places_of(finding):
        properties = {"file": places[0].file, "line": str(places[0].line), **properties}
    where = f" ({', '.join(finding.sites[:3])})" if finding.sites else ""
    text = f"{finding.message}{where}\nFix: {finding.fix}" if finding.fix else finding.message
    joined = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {joined}::{_message(text)}"


def _message(text: str) -> str:
    """What stands behind `::` ends with its line, and `%` begins an escape."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
