"""Findings as lines of text, from plain data, for `nethook run` and `nethook diagnose`.

    for line in finding_lines(run.findings, Style(colour=True), rows=20): print(line)

Where they must fit a screen they are folded: the first, which is the root cause, stays whole, and
of the others as much is shown as fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nethook.text.findings import Evidence, Finding, places, read_finding
from nethook.text.findings import verdict as counted
from nethook.text.numbers import ascii_number
from nethook.text.paragraphs import Style, wrapped
from nethook.text.tried_lines import tried_by_code

MOST: Final = 12
"""Findings that are listed; a report has them all."""


class _Forms(NamedTuple):
    """A finding, longer and shorter."""

    whole: list[str]
    brief: list[str]  # what, and its fix
    named: list[str]  # what


def finding_lines(
    findings: Sequence[Mapping[str, Any]],
    style: Style,
    tried: Any = None,
    *,
    rows: int | None = None,
) -> Iterator[str]:
    """How many there are, and of each: what, where, since when, how it is known, what to change.

    Arguments:
        findings: as a run file has them, root causes first.
        style: colours and width.
        tried: the run's fact of this name: the fixes that were tried.
        rows: lines that there is room for; None lists up to `MOST` findings in full.
    """
    outcomes = tried_by_code(tried)
    read = [read_finding(stored, tried=outcomes) for stored in findings]
    yield f"{counted(read)}:"
    forms = [_forms(finding, style) for finding in read[:MOST]]
    blocks = [form.whole for form in forms] if rows is None else _folded(forms, rows - 1, len(read))
    for block in blocks:
        yield from block
    if len(read) > len(blocks):
        yield f"  and {len(read) - len(blocks)} more"


def _folded(forms: Sequence[_Forms], rows: int, total: int) -> list[list[str]]:
    """As much of each as there is room for, folding from the last to the second."""
    blocks = [form.whole for form in forms]

    def fits() -> bool:
        return sum(map(len, blocks)) + (len(blocks) < total) <= rows

    for shorter in ("brief", "named"):
        for place in range(len(blocks) - 1, 0, -1):
            if fits():
                return blocks
            blocks[place] = getattr(forms[place], shorter)
    while len(blocks) > 1 and not fits():
        blocks.pop()
    if blocks and not fits():
        blocks[0] = forms[0].brief
    return blocks


def _forms(finding: Finding, style: Style) -> _Forms:
    named = list(
        wrapped(f"{finding.severity}: {_headline(finding)}", style, finding.severity, indent=2)
    )
    about = [
        ("", finding.message),
        ("at: ", ", ".join(places(finding))),
        ("evidence: ", ", ".join(map(_evidence, finding.evidence[:6]))),
        ("leads to: ", ", ".join(effect.code for effect in finding.consequences if effect.code)),
    ]
    change = [("fix: ", finding.fix), ("tried: ", finding.tried)]
    fix = _labelled(change, style)
    return _Forms([*named, *_labelled(about, style), *fix], [*named, *fix], named)


def _labelled(texts: Sequence[tuple[str, str]], style: Style) -> list[str]:
    return [
        line for label, text in texts if text for line in wrapped(f"{label}{text}", style, indent=4)
    ]


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
