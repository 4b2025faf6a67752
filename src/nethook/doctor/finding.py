"""What the doctor found: data that a person and a program can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from nethook.text.escape import line

Severity: TypeAlias = Literal["info", "warning", "error"]
SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "error")
"""From the least to the most severe."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number, and the threshold that it was compared with."""

    value: float
    threshold: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """Plain data."""
        return {"value": self.value, "threshold": self.threshold}


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault: what, where, since when, how it is known, and what to change.

    `sites` are addresses, and may be empty; steps count from 0. `lines` are places in the user's
    code, as `train.py:42`. `consequences` are findings that follow from this one.
    """

    code: str
    severity: Severity
    message: str
    fix: str
    sites: tuple[str, ...] = ()
    first_step: int = 0
    last_step: int = 0
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    consequences: tuple[Finding, ...] = ()
    lines: tuple[str, ...] = ()

    def at_least(self, severity: Severity) -> bool:
        """Whether it is as severe as that, or more."""
        return SEVERITIES.index(self.severity) >= SEVERITIES.index(severity)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `nethook diagnose --json` prints it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "sites": list(self.sites),
            "lines": list(self.lines),
            "first_step": self.first_step,
            "last_step": self.last_step,
            "evidence": {name: evidence.to_dict() for name, evidence in self.evidence.items()},
            "message": self.message,
            "fix": self.fix,
            "consequences": [finding.to_dict() for finding in self.consequences],
        }

    def __str__(self) -> str:
        where = f" at {', '.join(self.sites[:3])}" if self.sites else ""
        said = f"{self.code} ({self.severity}){where}, since step {self.first_step}: {self.message}"
        return line(said)  # names in it are those of the user's modules
