"""Findings for the formats of CI."""

from __future__ import annotations

from pathlib import Path

from nethook.text.findings import Finding, read_findings


def findings(folder: Path) -> list[Finding]:
    """An error with a line in this folder and sites, and a note without either."""
    return read_findings(
        [
            {
                "code": "dead-units",
                "severity": "error",
                "message": "60 of 64 units (94 %) are silent, <always>: \x1b[31mred\nnext",
                "fix": "Lower the rate, or use LeakyReLU.",
                "sites": ["net.relu", "net.a,b"],
                "lines": [f"{folder / 'train, it.py'}:42", "nowhere"],
                "first_step": 3,
                "last_step": 90,
            },
            {"code": "repeated-batch", "severity": "info", "message": "one batch", "fix": ""},
        ]
    )
