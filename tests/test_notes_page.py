"""docs/notes-put-right.md and tests/test_notes.py tell of the same statements."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_statement_has_its_test_and_each_test_its_statement() -> None:
    page = (ROOT / "docs" / "notes-put-right.md").read_text(encoding="utf-8")
    tests = (ROOT / "tests" / "test_notes.py").read_text(encoding="utf-8")
    cited = re.findall(r"`(test_\w+)` \|$", page, re.MULTILINE)
    written = re.findall(r"^def (test_\w+)", tests, re.MULTILINE)
    assert sorted(cited) == sorted(written)
    assert len(set(written)) == len(written) > 50


def test_every_row_of_the_page_cites_a_test() -> None:
    page = (ROOT / "docs" / "notes-put-right.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    rows = [row for row in rows if not row.startswith(("| the notes say", "| ---"))]
    assert [row for row in rows if not re.search(r"`test_\w+` \|$", row)] == []
    assert [row for row in rows if row.replace(r"\|", "").count("|") != 4] == []
