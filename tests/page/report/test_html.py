"""The page of a report: every text is escaped, every script is named by its hash."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from nethook.page.report.html import Report, Tab, layer_id, looks, page
from nethook.text.findings import read_findings
from tests.figures.pages import Page

EVIL = "<script>pwned()</script>\"'>&"
SPEC = {"data": [{"type": "scatter", "x": [0, 1], "y": [2, 3]}], "layout": {"height": 120}}
PLOTLY = "/* plotly */"


def report(**fields: object) -> Report:
    told: dict[str, object] = {
        "title": "mnist", "subtitle": "today", "verdict": "healthy", "severity": "good",
        "note": "", "facts": [("steps", "3")], "findings": [], "overview": None, "tabs": [],
        "depth": [], "tree": None, "layers": [], "layers_note": "", "events": [], "ran": [],
    }  # fmt: skip
    return Report(**{**told, **fields})  # type: ignore[arg-type]


def test_a_page_without_anything_is_a_page() -> None:
    text = page(report(), PLOTLY)
    parsed = Page(text)
    assert parsed.open == []
    assert "healthy" in parsed.text
    assert "<title>mnist – nethook</title>" in text
    assert parsed.figures == {}


def test_every_text_is_escaped() -> None:
    evil = dict.fromkeys(("title", "subtitle", "verdict", "note", "layers_note"), EVIL)
    made = report(
        **evil, facts=[(EVIL, EVIL)], tabs=[Tab(EVIL, EVIL, SPEC), Tab("b", EVIL, SPEC)],
        events=[(EVIL, EVIL, EVIL, EVIL)], ran=[(EVIL, EVIL)],
    )  # fmt: skip
    parsed = Page(page(made, PLOTLY))
    assert not [text for _, text in parsed.scripts if text.startswith("pwned")]
    assert "<script>pwned()" in parsed.text  # shown as it is


def test_a_fix_that_was_tried_is_told_with_its_outcome() -> None:
    tried = [{"code": "a", "change": EVIL, "helped": True, "train": [2.0, 1.0]}]
    findings = read_findings([{"code": "a", "fix": "Lower it."}, {"code": "b", "fix": "x"}], tried)
    parsed = Page(page(report(findings=[(each, []) for each in findings]), PLOTLY))
    assert f"Tried {EVIL}: training loss 2 → 1. It helped." in parsed.text
    assert parsed.text.count("Tried") == 1


def test_the_policy_names_both_scripts_by_their_hashes_and_allows_no_other() -> None:
    text = page(report(), PLOTLY)
    parsed = Page(text)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    allowed = set(re.findall(r"sha256-([\w+/=]+)", policy))
    run = [script for attrs, script in parsed.scripts if "type" not in attrs]
    hashes = {base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in run}
    assert len(run) == 2
    assert hashes == allowed
    assert "default-src &#x27;none&#x27;" in policy or "default-src 'none'" in policy


def test_a_figure_is_a_div_of_its_height_and_a_script_of_json() -> None:
    parsed = Page(page(report(overview=SPEC), PLOTLY))
    (name, data), *_ = parsed.figures.items()
    (drawn,) = (attrs for _, attrs in parsed.elements if attrs.get("data-figure") == name)
    assert drawn["style"] == "height:120px"
    assert data["data"][0]["y"] == [2, 3]


def test_looks_are_json_for_both_themes() -> None:
    assert set(json.loads(looks())["templates"]) == {"light", "dark"}
    assert layer_id(3) == "layer-3"
