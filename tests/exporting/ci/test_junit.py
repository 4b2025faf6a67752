"""The report, read back by an XML parser."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from nethook.exporting.ci.junit import junit_report
from tests.exporting.ci.made import findings


def report(
    found: list, *, verdict: str = "1 error, 1 note", fine: bool = False, fail_on: str = "error"
) -> ET.Element:
    text = junit_report(found, run="mnist", verdict=verdict, fine=fine, fail_on=fail_on)
    return ET.fromstring(text)


@pytest.mark.parametrize(("fail_on", "failures"), [("error", 1), ("warning", 1), ("info", 2)])
def test_what_is_severe_enough_fails(tmp_path: Path, fail_on: str, failures: int) -> None:
    suite = report(findings(tmp_path), fail_on=fail_on)
    assert suite.tag == "testsuite"
    assert (suite.get("tests"), suite.get("failures")) == ("2", str(failures))
    assert len(suite.findall("testcase/failure")) == failures
    assert [case.get("name") for case in suite] == ["dead-units", "repeated-batch"]
    assert {case.get("classname") for case in suite} == {"mnist"}


def test_a_failure_has_the_whole_text(tmp_path: Path) -> None:
    case = report(findings(tmp_path))[0]
    failure = case.find("failure")
    assert failure is not None
    assert (case.get("file"), case.get("line")) == (str(tmp_path / "train, it.py"), "42")
    text = failure.text or ""
    assert "silent, <always>: \\x1b[31mred\nnext" in text  # XML has no control characters
    assert "where: net.relu, net.a,b" in text
    assert text.endswith("fix: Lower the rate, or use LeakyReLU.")


def test_a_run_that_was_not_judged_does_not_pass() -> None:
    judged = report([], verdict="no problems found (9 checks)", fine=True)
    assert (judged.get("tests"), judged.get("skipped")) == ("1", "0")
    assert judged[0].findtext("system-out") == "no problems found (9 checks)"
    unjudged = report([], verdict="not judged: no loss was seen")
    assert (unjudged.get("tests"), unjudged.get("skipped")) == ("1", "1")
    skipped = unjudged[0].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "not judged: no loss was seen"
