"""Findings as lines of text, from plain data, for `nethook run` and `nethook diagnose`.

for line in finding_lines(run.findings, Style(colour=True)): print(line)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nethook.text.findings import Evidence, Finding, places, read_finding
from nethook.text.numbers import ascii_number, count
from nethook.text.paragraphs import Style, wrapped
from nethook.text.tried_lines import tried_by_code

MOST: Final = 12
"""Findings that are listed; a report has them all."""


def finding_lines(
    findings: Sequence[Mapping[str, Any]], style: Style, tried: Any = None
) -> Iterator[str]:
    """How many there are, and of each: what, where, since when, how it is known, what to change.

    `tried` is the run's fact of this name: the fixes that were tried.
    """
    yield count(len(findings), "finding") + ":"
    outcomes = tried_by_code(tried)
    for finding in (read_finding(stored, tried=outcomes) for stored in findings[:MOST]):
        yield from wrapped(
            f"{finding.severity}: {_headline(finding)}", style, finding.severity, indent=2
        )
        for label, text in (
            ("", finding.message),
            ("at: ", ", ".join(places(finding))),
            ("evidence: ", ", ".join(map(_evidence, finding.evidence[:6]))),
            (
                "leads to: ",
                ", ".join(effect.code for effect in finding.consequences if effect.code),
            ),
            ("fix: ", finding.fix),
            ("tried: ", finding.tried),
        ):
            if text:
                yield from wrapped(f"{label}{text}", indent=4)
    if len(findings) > MOST:
        yield f"  and {len(findings) - MOST} more"


def _headline(finding: Finding) -> str:
    where = ", ".join(finding.sites[:3])
    if len(finding.sites) > 3:
        where += f" and {len(finding.sites) - 3} more"
    first, last = finding.first_step, finding.last_step
    when = "" if first is None else f"step {first}"
    if first is not None and last is not None and last != first:
        when = f"steps {first} to {last}"
    about = "; ".join(text for text in (where, when) if text)
    return finding.code + (f" ({about})" if about else "")


def _evidence(evidence: Evidence) -> str:
    limit = "" if evidence.threshold is None else f" (limit {ascii_number(evidence.threshold, 4)})"
    return f"{evidence.name} {ascii_number(evidence.value, 4)}{limit}"
