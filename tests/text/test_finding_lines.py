"""Findings as lines of text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nethook.text.finding_lines import MOST, finding_lines
from nethook.text.paragraphs import WIDTH, Style

FINDING: dict[str, Any] = {
    "code": "dead-units",
    "severity": "error",
    "message": "Half of the units are dead.",
    "fix": "Lower the learning rate.",
    "sites": ["fc1"],
    "first_step": 20,
    "last_step": 20,
    "evidence": [{"name": "dead share", "value": 0.512345, "threshold": 0.5}],
    "consequences": [{"code": "not-learning", "message": "so nothing is learnt"}],
}


def lines_of(*findings: dict[str, Any], colour: bool = False) -> list[str]:
    return list(finding_lines(findings, Style(colour=colour)))


def test_one_finding_in_full() -> None:
    assert lines_of(FINDING) == [
        "1 error:",
        "  error: dead-units (fc1; step 20)",
        "    Half of the units are dead.",
        "    evidence: dead share 0.5123 (limit 0.5)",
        "    leads to: not-learning",
        "    fix: Lower the learning rate.",
    ]


def test_lines_of_the_script_stand_below_the_message() -> None:
    told = lines_of({**FINDING, "lines": ["train.py:42", "net.py:7", "a.py:1", "b.py:2"]})
    assert told[3] == "    at: train.py:42, net.py:7, a.py:1"


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({"last_step": 40}, "dead-units (fc1; steps 20 to 40)"),
        ({"last_step": None}, "dead-units (fc1; step 20)"),
        ({"first_step": None}, "dead-units (fc1)"),
        ({"sites": []}, "dead-units (step 20)"),
        ({"sites": [], "first_step": None}, "dead-units"),
        ({"sites": list("abcde")}, "dead-units (a, b, c and 2 more; step 20)"),
    ],
)
def test_where_and_when(changes: dict[str, Any], headline: str) -> None:
    assert lines_of({**FINDING, **changes})[1] == f"  error: {headline}"


def test_lines_below_this_folder_are_told_as_one_would_type_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here, elsewhere = f"{tmp_path / 'src' / 'train.py'}:42", f"{tmp_path}-2{os.sep}net.py:7"
    told = lines_of({**FINDING, "lines": [here, elsewhere]})
    text = "".join("".join(told[3:6]).split())  # a long path may be broken
    assert text.startswith(f"at:src{os.sep}train.py:42,{elsewhere}")


def test_a_fix_that_was_tried_is_told_under_it() -> None:
    tried = [{"code": "dead-units", "change": "rate / 10", "helped": None, "why": "no steps"}]
    told = list(finding_lines([FINDING, {**FINDING, "code": "other"}], Style(), tried))
    assert told[6] == "    tried: rate / 10: not judged: no steps."
    assert sum("tried:" in line for line in told) == 1


def test_what_a_finding_lacks_has_no_line() -> None:
    assert lines_of({"code": "odd"}) == ["1 note:", "  info: odd"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(12345.6, "1.235e+04"), (12345, "12,345"), ("relu", "relu"), (True, "True"), (-0.5, "-0.5")],
)
def test_evidence_may_be_any_value(value: object, shown: str) -> None:
    lines = lines_of({"code": "odd", "evidence": {"it": value}})
    assert lines[-1] == f"    evidence: it {shown}"


def test_many_findings_are_counted_and_not_all_listed() -> None:
    lines = lines_of(*[{"code": f"code-{number}"} for number in range(MOST + 3)])
    assert lines[0] == f"{MOST + 3} notes:"
    assert lines[-1] == "  and 3 more"
    assert len(lines) == 1 + MOST + 1


def test_lines_fit_a_terminal() -> None:
    wordy = {**FINDING, "message": "word " * 100, "fix": "other " * 100}
    assert all(len(line) <= WIDTH for line in lines_of(wordy))


def test_the_severity_has_its_colour() -> None:
    assert lines_of(FINDING, colour=True)[1].startswith("  \x1b[31merror\x1b[0m: dead-units")


def test_what_does_not_fit_is_folded_from_the_last_to_the_second() -> None:
    findings = [{**FINDING, "code": code} for code in "abc"]
    whole = lines_of(*findings)
    assert len(whole) == 1 + 3 * 5

    def codes_and_fixes(rows: int) -> list[str]:
        shown = list(finding_lines(findings, Style(), rows=rows))
        assert len(shown) <= rows
        assert shown[:6] == whole[:6]  # the first stays whole
        return [line.split()[1] for line in shown[6:]]

    assert list(finding_lines(findings, Style(), rows=len(whole))) == whole
    second_whole = [line.split()[1] for line in whole[6:11]]
    assert codes_and_fixes(13) == [*second_whole, "c", "Lower"]
    assert codes_and_fixes(10) == ["b", "Lower", "c", "Lower"]
    assert codes_and_fixes(9) == ["b", "Lower", "c"]
    assert codes_and_fixes(8) == ["b", "c"]
    assert codes_and_fixes(7) == ["2"]  # and 2 more


def test_where_hardly_anything_fits_the_first_has_its_name_and_its_fix() -> None:
    shown = list(finding_lines([FINDING, FINDING], Style(), rows=4))
    assert [line.split()[0] for line in shown] == ["2", "error:", "fix:", "and"]
