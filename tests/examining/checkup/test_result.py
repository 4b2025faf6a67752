"""What a pre-flight check returns."""

from __future__ import annotations

import json

import pytest

from nethook.doctor.finding import Finding, Severity
from nethook.examining.checkup.result import Check, Checkup
from nethook.init.proof.report import Report

CHECKS = (
    Check("inputs", "ok", "fine"),
    Check("first loss", "bad", "too <high>"),
    Check("modes", "note", "differ"),
    Check("dead units", "unknown", "few samples"),
)


def result(*severities: Severity) -> Checkup:
    findings = tuple(Finding("code", severity, "message", "fix") for severity in severities)
    return Checkup("Net", CHECKS, findings, Report("Net", (), 0.0))


@pytest.mark.parametrize(
    ("severities", "ok"),
    [((), True), (("info",), True), (("warning",), False), (("error",), False)],
)
def test_when_it_is_ok(severities: tuple[Severity, ...], ok: bool) -> None:
    assert result(*severities).ok is ok


def test_a_check_by_its_name() -> None:
    assert result()["first loss"] is CHECKS[1]
    with pytest.raises(KeyError, match="no check 'speed'; there are inputs, first loss, modes"):
        result()["speed"]


def test_its_table() -> None:
    lines = repr(result("error", "info")).splitlines()
    assert lines[0] == "pre-flight check of Net: 1 finding"
    signs = {line.split()[0] for line in lines[3:7]}
    assert signs == {"✓", "✗", "·", "?"}
    assert repr(result()).startswith("pre-flight check of Net: all well")
    assert "→ fix" in repr(result("error"))


def test_html_is_escaped() -> None:
    html = result("error")._repr_html_()
    assert html.count("<table>") == 2
    assert "too &lt;high&gt;" in html


def test_plain_data() -> None:
    data = result("error").to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["ok"] is False
    assert data["checks"][1] == {"name": "first loss", "state": "bad", "text": "too <high>"}
    assert data["findings"][0]["severity"] == "error"
    assert data["scales"]["model"] == "Net"


def test_consequences_are_listed_below_their_cause() -> None:
    below = Finding("below", "warning", "a consequence", "nothing")
    cause = Finding("above", "error", "a cause", "do it", consequences=(below,))
    text = repr(Checkup("Net", CHECKS, (cause,), Report("Net", (), 0.0)))
    assert text.index("a cause") < text.index("a consequence")
