"""Findings as lines of text, from plain data, for `nethook run` and `nethook check`.

for line in finding_lines(run.findings, Style(colour=True)): print(line)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nethook.text.paragraphs import Style, counted, number, wrapped

MOST: Final = 12
"""Findings that are listed; a report has them all."""
HEALTHY: Final = "nothing was found that is wrong with it."
"""What is said of a run that was diagnosed and has no findings."""


def finding_lines(findings: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """How many there are, and of each: what, where, since when, how it is known, what to change."""
    yield counted(len(findings), "finding") + ":"
    for finding in findings[:MOST]:
        severity = str(finding.get("severity", "warning"))
        yield from wrapped(f"{severity}: {_headline(finding)}", style, severity, indent=2)
        for label, text in (
            ("", finding.get("message")),
            ("evidence: ", _evidence(finding.get("evidence"))),
            ("leads to: ", _consequences(finding.get("consequences"))),
            ("fix: ", finding.get("fix")),
        ):
            if text:
                yield from wrapped(f"{label}{text}", indent=4)
    if len(findings) > MOST:
        yield f"  and {len(findings) - MOST} more"


def healthy_line(style: Style) -> str:
    """The line of a run without findings."""
    return style("good", "healthy") + f": {HEALTHY}"


def _headline(finding: Mapping[str, Any]) -> str:
    sites = finding.get("sites") or []
    where = ", ".join(map(str, sites[:3])) + (
        f" and {len(sites) - 3} more" if len(sites) > 3 else ""
    )
    first, last = finding.get("first_step"), finding.get("last_step")
    when = "" if first is None else f"step {first}"
    if first is not None and last is not None and last != first:
        when = f"steps {first} to {last}"
    about = "; ".join(part for part in (where, when) if part)
    return f"{finding.get('code', '?')}" + (f" ({about})" if about else "")


def _evidence(evidence: Any) -> str:
    if not isinstance(evidence, Mapping):
        return str(evidence) if evidence else ""
    shown = []
    for name, value in list(evidence.items())[:6]:
        if isinstance(value, Mapping):
            against = value.get("threshold", value.get("limit"))
            limit = f" (limit {number(against)})" if against is not None else ""
            shown.append(f"{name} {number(value.get('value'))}{limit}")
        else:
            shown.append(f"{name} {number(value)}")
    return ", ".join(shown)


def _consequences(found: Any) -> str:
    if not isinstance(found, Sequence) or isinstance(found, str):
        return ""
    return ", ".join(str(each.get("code", "?")) for each in found if isinstance(each, Mapping))
