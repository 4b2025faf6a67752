"""docs/findings.md has every code, with a program that expects it and what nethook said of it."""

from __future__ import annotations

import re

import pytest

from nethook.doctor.rules import own_rules
from tools.findings_page import PAGE, ROOT, WITHOUT, Program, entries, of_finding

TEXT = PAGE.read_text(encoding="utf-8")
ENTRIES = entries(TEXT)
CODES = [rule.code for rule in own_rules()]


def test_every_code_has_its_entry() -> None:
    assert sorted(ENTRIES) == sorted(CODES), "run python -m tools.findings_page"


@pytest.mark.parametrize("code", [code for code in CODES if code not in WITHOUT])
def test_an_entry_shows_a_program_that_expects_the_code(code: str) -> None:
    found = re.search(r"^`(zoo/[\w/]+\.py)`$", ENTRIES[code], re.MULTILINE)
    assert found is not None
    program = Program(ROOT / found[1])
    assert program.expect == code
    assert program.code in ENTRIES[code], f"run python -m tools.findings_page {code}"


@pytest.mark.parametrize("code", [code for code in CODES if code not in WITHOUT])
def test_an_entry_shows_the_finding_with_its_fix(code: str) -> None:
    shown = re.search(
        r"```text\n((?:error|warning|info): ([\w-]+).*?)```", ENTRIES[code], re.DOTALL
    )
    assert shown is not None
    assert shown[2] == code
    assert "\n  fix: " in shown[1]
    assert "/zoo/" not in shown[1]  # a path of the machine on which it was made


def test_one_finding_is_taken_out_of_a_verdict() -> None:
    text = (
        "2 findings:\n"
        "  error: missing-step (steps 0 to 9)\n"
        "    no step.\n"
        "    fix: Call it.\n"
        "  info: repeated-batch\n"
        "    again.\n"
        "next: nethook report a.db\n"
    )
    assert of_finding(text, "missing-step") == (
        "error: missing-step (steps 0 to 9)\n  no step.\n  fix: Call it."
    )
    assert of_finding(text, "repeated-batch") == "info: repeated-batch\n  again."
    assert of_finding(text, "no-gradient") == ""
