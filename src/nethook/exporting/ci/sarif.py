"""Findings as SARIF 2.1.0, the format that code scanners upload.

nethook diagnose runs/train.db --format sarif > nethook.sarif
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from nethook.exporting.ci.places import places_of
from nethook.text.findings import Finding

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}


def sarif_log(findings: Sequence[Finding], *, run: str, verdict: str, version: str) -> str:
    """The log as JSON; `run` and the verdict are properties of the one run in it."""
    codes = list(dict.fromkeys(finding.code for finding in findings))
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "nethook",
                        "version": version,
                        "rules": [{"id": code} for code in codes],
                    }
                },
                "results": [_result(finding, codes) for finding in findings],
                "columnKind": "unicodeCodePoints",
                "properties": {"run": run, "verdict": verdict},
            }
        ],
    }
    return json.dumps(log, indent=2)


def _result(finding: Finding, codes: list[str]) -> dict[str, Any]:
    text = f"{finding.message} Fix: {finding.fix}" if finding.fix else finding.message
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": text or finding.code},
        "properties": {"first_step": finding.first_step, "last_step": finding.last_step},
    }
    locations: list[dict[str, Any]] = [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": place.uri},
                "region": {"startLine": place.line},
            }
        }
        for place in places_of(finding)
    ]
    if finding.sites:
        named = [{"fullyQualifiedName": site, "kind": "module"} for site in finding.sites]
        locations = locations or [{}]
        locations[0] = {**locations[0], "logicalLocations": named}
    if locations:
        result["locations"] = locations
    return result
