"""What a pre-flight check has found: a line per check, findings, and the scales over depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from nethook.doctor.finding import Finding
from nethook.init.proof.report import Report

State: TypeAlias = Literal["ok", "note", "unknown", "bad"]
_SIGNS = {"ok": "✓", "note": "·", "unknown": "?", "bad": "✗"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: "ok", "bad", "note" (worth knowing), or "unknown"."""

    name: str
    state: State
    text: str

    def to_dict(self) -> dict[str, str]:
        """Plain data."""
        return {"name": self.name, "state": self.state, "text": self.text}


@dataclass(frozen=True, slots=True, repr=False)
class Checkup:
    """What `nethook.checkup` returns.

    `checks` are what was looked at, `findings` what is wrong, root causes first, as `diagnose` has
    them; `scales` is what `nethook.init.verify` measured.
    """

    model: str
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    scales: Report

    @property
    def ok(self) -> bool:
        """Whether nothing was found at `warning` or above."""
        return not any(finding.at_least("warning") for finding in self.findings)

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no check {name!r}; there are {', '.join(c.name for c in self.checks)}.")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "model": self.model,
            "ok": self.ok,
            "checks": [check.to_dict() for check in self.checks],
            "findings": [finding.to_dict() for finding in self.findings],
            "scales": self.scales.to_dict(),
        }

    def _tables(self) -> list[Any]:
        from nethook.text.numbers import count
        from nethook.text.table import Table

        bad = sum(finding.at_least("warning") for finding in self.findings)
        state = "all well" if self.ok else count(bad, "finding")
        rows = [(_SIGNS[check.state], check.name, check.text) for check in self.checks]
        tables = [Table(f"pre-flight check of {self.model}: {state}", ["", "check", "what"], rows)]
        if self.findings:
            told = [
                (one.code, one.severity, line)
                for finding in self.findings
                for one in (finding, *finding.consequences)
                for line in (one.message, f"→ {one.fix}")
            ]
            tables.append(Table(count(len(self.findings), "finding"), ["code", "", "what"], told))
        return tables

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self._tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self._tables())
