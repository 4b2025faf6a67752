"""Findings as HTML: complete, safe, and without anything that a sanitiser would take out."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from nethook.text.finding_html import MOST, findings_html

FINDING: dict[str, Any] = {
    "code": "dead-units",
    "severity": "error",
    "message": "Half of the units are dead.",
    "fix": "Lower the learning rate.",
    "sites": ["a", "b", "c", "d"],
    "first_step": 20,
    "last_step": 40,
    "lines": ["train.py:7"],
    "evidence": {"dead share": {"value": 0.5123, "threshold": 0.5}},
    "consequences": [{"code": "not-learning"}],
}


class Reader(HTMLParser):
    """The text of a page, and whether every tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.seen: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


def test_a_finding_has_all_its_parts() -> None:
    tried = [{"code": "dead-units", "change": "rate / 10", "helped": None, "why": "no steps"}]
    reader = Reader(findings_html([FINDING], "1 error", "error", tried))
    assert reader.open == []
    text = " ".join(reader.text.split())
    for part in (
        "1 error", "error dead-units a, b, c and 1 more; steps 20 to 40", "Half of the units",
        "at: train.py:7", "fix: Lower the learning rate.", "tried: rate / 10: not judged",
        "dead share 0.5123 limit 0.5", "leads to: not-learning",
    ):  # fmt: skip
        assert part in text
    assert "script" not in reader.seen


def test_without_findings_the_verdict_stands_alone() -> None:
    page = findings_html([], "no problems found (54 checks)", "good")
    assert Reader(page).text.split() == ["no", "problems", "found", "(54", "checks)"]


def test_hostile_texts_are_texts() -> None:
    hostile = "<script>alert(1)</script>\"'\x1b"
    finding = {**FINDING, "code": hostile, "message": hostile, "sites": [hostile], "fix": hostile}
    page = findings_html([finding], hostile, hostile)
    reader = Reader(page)
    assert "script" not in reader.seen
    assert "alert(1)" in reader.text
    assert "\x1b" not in page


def test_many_are_counted() -> None:
    page = findings_html([FINDING] * (MOST + 2), "52 errors", "error")
    assert len(re.findall("<details>", page)) == MOST
    assert "and 2 more" in page
