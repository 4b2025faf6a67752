"""What `diagnose` returns: a list of findings that shows itself, with the verdict above it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nethook.doctor.finding import Finding
from nethook.doctor.verdict import Verdict
from nethook.text.finding_lines import finding_lines
from nethook.text.paragraphs import PLAIN, wrapped


class Findings(list[Finding]):
    """Findings, root causes first: a list, and equal to a list of the same findings.

        found = nethook.diagnose("runs/mnist.db")
        found                    # the verdict and every finding, in a terminal or a notebook
        found.verdict            # "no problems found (54 checks, 600 steps)"

    Arguments:
        findings: what was found.
        verdict: what may be said of the run as a whole.
        tried: fixes that were tried, as the run has them.
    """

    def __init__(
        self, findings: Iterable[Finding] = (), verdict: Verdict | None = None, tried: Any = None
    ) -> None:
        super().__init__(findings)
        self.verdict = "" if verdict is None else str(verdict)
        self._counted = verdict is not None and verdict.state == "findings"
        self._severity = "quiet" if verdict is None else verdict.severity
        self._tried = tried

    def __repr__(self) -> str:
        rows = [finding.to_dict() for finding in self]
        lines = [] if self._counted else [*wrapped(self.verdict, PLAIN)]  # counted below
        if rows:
            lines += finding_lines(rows, PLAIN, self._tried)
        return "\n".join(lines) if lines else "[]"

    def _repr_html_(self) -> str:
        from nethook.text.finding_html import findings_html

        rows = [finding.to_dict() for finding in self]
        return findings_html(rows, self.verdict, self._severity, self._tried)
