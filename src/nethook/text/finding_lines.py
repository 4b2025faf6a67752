"""Findings as lines of text, from plain data, for `nethook run` and `nethook diagnose`.

for line in finding_lines(run.findings, Style(colour=True)): print(line)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nethook.text.findings import Evidence, Finding, read_finding
from nethook.text.numbers import ascii_number, count
from nethook.text.paragraphs import Style, wrapped

MOST: Final = 12
"""Findings that are listed; a report has them all."""


def finding_lines(
    findings: Sequence[Mapping[str, Any]], style: Style, tried: Mapping[str, str] | None = None
) -> Iterator[str]:
    """How many there are, and of each: what, where, since when, how it is known, what to change.

    `tried` is what came of trying a fix, by the code of its finding.
    """
    yield count(len(findings), "finding") + ":"
    for finding in map(read_finding, findings[:MOST]):
        yield from wrapped(
            f"{finding.severity}: {_headline(finding)}", style, finding.severity, indent=2
        )
        for label, text in (
            ("", finding.message),
            ("at: ", ", ".join(finding.lines[:3])),
            ("evidence: ", ", ".join(map(_evidence, finding.evidence[:6]))),
            (
                "leads to: ",
                ", ".join(effect.code for effect in finding.consequences if effect.code),
            ),
            ("fix: ", finding.fix),
            ("tried: ", (tried or {}).get(finding.code, "")),
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
