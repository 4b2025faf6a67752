"""The page of a file: every text is escaped, every script is named by its hash."""

from __future__ import annotations

import base64
import hashlib
import re

from nethook.page.report.page import Chapter, Made, made, page
from nethook.page.section import Drawing, Section
from tests.figures.pages import Page

EVIL = "<script>pwned()</script>\"'>&"
SPEC = {"data": [{"type": "scatter", "x": [0, 1], "y": [2, 3]}], "layout": {"height": 120}}
PLOTLY = "/* plotly */"
COST = {"facts": [(EVIL, EVIL)]}


def section() -> Section:
    drawings = {"costs": Drawing("", lambda: SPEC), "none": Drawing("", lambda: None)}
    return Section("cost", "", lambda: COST, drawings)


def test_a_page_without_anything_is_a_page() -> None:
    text = page("mnist", [], PLOTLY)
    parsed = Page(text)
    assert parsed.open == []
    assert "<title>mnist – nethook</title>" in text
    assert parsed.figures == {}


def test_every_text_is_escaped() -> None:
    chapter = Chapter("a", EVIL, [made(section())], EVIL, EVIL, filtered=True)
    parsed = Page(page(EVIL, [chapter], PLOTLY))
    assert not [text for _, text in parsed.scripts if text.startswith("pwned")]
    assert parsed.text.count("<script>pwned()") >= 5  # shown as it is
    assert parsed.open == []


def test_the_policy_names_both_scripts_by_their_hashes_and_allows_no_other() -> None:
    text = page("a", [], PLOTLY)
    parsed = Page(text)
    policy = next(attrs["content"] for _, attrs in parsed.elements if attrs.get("http-equiv"))
    assert policy is not None
    allowed = set(re.findall(r"sha256-([\w+/=]+)", policy))
    run = [script for attrs, script in parsed.scripts if "type" not in attrs]
    hashes = {base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in run}
    assert len(run) == 2
    assert hashes == allowed
    assert policy.startswith("default-src 'none'")


def test_a_figure_is_a_place_and_a_script_of_json_and_one_that_is_not_there_has_none() -> None:
    parsed = Page(page("a", [Chapter("a", "", [made(section())])], PLOTLY))
    ((name, data),) = parsed.figures.items()
    (place,) = (attrs for _, attrs in parsed.elements if attrs.get("data-figure") == name)
    assert place["id"] == "frame-costs"
    assert data["data"][0]["y"] == [2, 3]


def test_the_size_is_that_of_text_and_figures() -> None:
    assert Made("äb", {"name": "12345"}).size == 3 + 4 + 5 + 70
