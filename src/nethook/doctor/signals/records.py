"""A finding that rests on records of a loss: dated by them, with the line of the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nethook.doctor.finding import Evidence, Finding, Severity
from nethook.doctor.history import LossFacts
from nethook.doctor.phrases import file_and_line


def finding_of_records(
    code: str,
    severity: Severity,
    message: str,
    fix: str,
    records: Sequence[LossFacts],
    evidence: Mapping[str, Evidence],
) -> Finding:
    """From the first of these records to the last."""
    first = records[0]
    return Finding(
        code,
        severity,
        message,
        fix,
        first_step=first.step,
        last_step=records[-1].step,
        evidence=dict(evidence),
        lines=file_and_line(first.fact("source")),
    )
