"""Text of others in every sink."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nethook.text.escape import cell, html_text, labels, line, plotly_text, script_json, shorten
from tests.figures.shared import HOSTILE

texts = st.text(max_size=60)


class Parts(HTMLParser):
    """What a browser would take from HTML: tags, and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


@given(texts)
@example(HOSTILE)
def test_html_shows_the_text_and_makes_no_tag(text):
    parts = Parts()
    parts.feed(f"<p>{html_text(text)}</p>")
    parts.close()
    assert parts.tags == ["p", "p"]
    assert parts.text == "\n".join(line(each) for each in text.split("\n"))
    assert '"' not in html_text(text)


@given(texts)
@example(HOSTILE)
def test_plotly_sees_neither_a_tag_nor_a_template_nor_tex(text):
    safe = plotly_text(text)
    assert not re.search(r"[<>$]|%\{", safe)
    # Plotly turns entities back, as a browser does: what is shown is the text.
    assert html.unescape(safe) == line(text)


@given(st.recursive(texts | st.floats() | st.integers(), lambda inner: st.lists(inner, max_size=3)))
@example(HOSTILE)
@example("</script>")
def test_json_in_a_script_says_the_same_and_cannot_end_it(value):
    text = script_json(value)
    assert "<" not in text
    assert ">" not in text
    assert text.isascii()

    def plain(entry):
        if isinstance(entry, list):
            return [plain(each) for each in entry]
        return None if isinstance(entry, float) and entry - entry != 0 else entry

    assert json.loads(text) == plain(value)


@given(texts)
@example(HOSTILE)
def test_a_line_is_one_printable_line(text):
    assert line(text).isprintable()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\n=1", "=cmd|'/c'!A0"])
def test_a_cell_is_no_formula(text):
    assert cell(text).startswith("'")


@given(texts)
@example("=1,2\n\"'")
def test_a_cell_comes_back_from_csv(text):
    stream = io.StringIO()
    csv.writer(stream).writerow([cell(text), "x"])
    (row,) = csv.reader(io.StringIO(stream.getvalue(), newline=""))
    assert row[1] == "x"
    assert row[0].removeprefix("'") == cell(text).removeprefix("'")
    assert not row[0].lstrip(" \n").startswith(("=", "+", "-", "@"))


@given(st.lists(st.text(alphabet="ab.<", max_size=80), max_size=12))
def test_labels_are_short_and_different(names):
    made = labels(names, 20)
    assert len(set(made)) == len(names)
    assert all(len(html.unescape(label)) <= 26 for label in made)


def test_a_long_text_keeps_both_ends():
    assert shorten("a" * 30 + "z" * 30, 11) == "aaaaa…zzzzz"
    assert shorten("short") == "short"
