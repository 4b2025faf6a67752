"""Findings as a JUnit report: one test case per finding.

A finding as severe as `--fail-on` is a failure; a milder one passes, with its text as output. A run
that could not be judged is a skipped case, so that no report shows it as passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from nethook.exporting.ci.places import places_of
from nethook.text.escape import line
from nethook.text.findings import SEVERITIES, Finding


def junit_report(
    findings: Sequence[Finding], *, run: str, verdict: str, fine: bool, fail_on: str
) -> str:
    """The report as XML.

    Arguments:
        findings: of the run.
        run: its name.
        verdict: on it as a whole, in words.
        fine: whether the verdict is that no problems were found.
        fail_on: the severity from which on a finding is a failure.
    """
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    failed = sum(finding.severity in failing for finding in findings)
    suite = ET.Element("testsuite", name="nethook")
    for finding in findings:
        suite.append(_case(finding, run, fails=finding.severity in failing))
    skipped = 0
    if not findings:
        case = ET.SubElement(suite, "testcase", classname=_safe(run), name="verdict")
        if fine:
            ET.SubElement(case, "system-out").text = _safe(verdict)
        else:
            skipped = 1
            ET.SubElement(case, "skipped", message=_safe(verdict))
    for name, number in (
        ("tests", len(suite)), ("failures", failed), ("errors", 0), ("skipped", skipped),
    ):  # fmt: skip
        suite.set(name, str(number))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=False)


def _case(finding: Finding, run: str, *, fails: bool) -> ET.Element:
    case = ET.Element("testcase", classname=_safe(run), name=_safe(finding.code))
    if places := places_of(finding):
        case.set("file", _safe(places[0].file))
        case.set("line", str(places[0].line))
    text = "\n".join(
        part
        for part in (
            finding.message,
            f"where: {', '.join(finding.sites)}" if finding.sites else "",
            f"at: {', '.join(finding.lines)}" if finding.lines else "",
            f"fix: {finding.fix}" if finding.fix else "",
        )
        if part
    )
    if fails:
        failure = ET.SubElement(
            case, "failure", type=finding.severity, message=_safe(finding.message)
        )
        failure.text = _safe(text)
    else:
        ET.SubElement(case, "system-out").text = _safe(text)
    return case


def _safe(text: str) -> str:
    """XML 1.0 has no control characters, not even escaped."""
    return "\n".join(line(row) for row in text.split("\n"))
