"""What templates put in: escaped, spelt out, and marked where it is code."""

from __future__ import annotations

import json

import pytest

from nethook.page.markup import empty_figure, escaped, looks, prose, render, section_html, value
from nethook.page.section import Section

EVIL = "<script>pwned()</script>\"'>&\x1b[31m\u2028"


def test_whatever_a_template_puts_in_is_escaped_and_spelt_out() -> None:
    said = {"kind": "broken", "name": EVIL, "problem": EVIL}
    shown = section_html(Section("note", "", lambda: said))
    assert "<script>" not in shown
    assert "\x1b" not in shown
    assert "&lt;script&gt;pwned()" in shown
    assert "\\x1b[31m" in shown
    assert "<" not in escaped(EVIL)


def test_a_name_that_a_template_has_no_value_for_is_an_error() -> None:
    with pytest.raises(Exception, match="undefined"):
        render("note.html", {})


def test_code_in_a_text_is_marked_and_nothing_else_is() -> None:
    assert prose("call `zero_grad()` first\nthen <b>") == (
        "call <code>zero_grad()</code> first<br>then &lt;b&gt;"
    )
    assert prose("a ` alone") == "a ` alone"
    assert prose("`a` and ` alone") == "<code>a</code> and ` alone"
    assert prose("`<b>`") == "<code>&lt;b&gt;</code>"


def test_a_table_puts_numbers_to_the_right_and_explains_its_columns() -> None:
    rows = {"rows": [("torch", "2.8")], "events": [("3", "a", "b", "c")], "ranks": []}
    shown = section_html(Section("ran", "", lambda: rows))
    assert shown.count('class="right"') == 2  # the head and one cell
    assert '<th scope="row">torch</th>' in shown


def test_choices_say_what_they_choose() -> None:
    data = {
        "options": [("spread", "Spread"), ("mean", "Mean")], "chosen": "mean", "all_time": True,
        "panes": [], "ends": [], "folds": [("▾ block (2)", "block", True)],
    }  # fmt: skip
    shown = section_html(Section("layers", "", lambda: data), live=True)
    assert 'data-param="q" data-value="mean"' in shown
    assert '<option value="mean" selected>Mean</option>' in shown
    assert 'data-param="all" data-value="" aria-pressed="true"' in shown  # a click takes it back


@pytest.mark.parametrize(
    ("measured", "text"), [(None, ""), (1234567, "1,234,567"), (0.123456, "0.1235"), (True, "True")]
)
def test_numbers_of_evidence(measured: object, text: str) -> None:
    assert value(measured) == text


def test_an_empty_figure_says_why() -> None:
    assert "nothing yet" in str(empty_figure("nothing yet"))


def test_looks_are_json_for_both_themes() -> None:
    assert set(json.loads(looks())["templates"]) == {"light", "dark"}
