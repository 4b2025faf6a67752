"""Paragraphs for a terminal: their width, their indent, their colour."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.text.paragraphs import WIDTH, Style, wrapped

WORDS = st.lists(st.text("abcdefgh-", min_size=1, max_size=12), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("kind", "code"), [("error", 31), ("warning", 33), ("info", 36), ("good", 32), ("bold", 1)]
)
def test_a_kind_has_its_colour_where_there_are_colours(kind: str, code: int) -> None:
    assert Style(colour=True)(kind, "text") == f"\x1b[{code}mtext\x1b[0m"
    assert Style()(kind, "text") == "text"


def test_a_kind_that_is_not_known_has_none() -> None:
    assert Style(colour=True)("loud", "text") == "text"
    assert Style(colour=True)("", "text") == "text"


@given(WORDS, st.integers(0, 8))
def test_lines_fit_and_hold_every_word_in_order(words: list[str], indent: int) -> None:
    lines = list(wrapped(" ".join(words), indent=indent))
    assert all(len(line) <= WIDTH for line in lines)
    assert " ".join(lines).split() == words
    assert lines[0].startswith(" " * indent)
    assert all(line.startswith(" " * (indent + 2)) for line in lines[1:])


def test_words_with_hyphens_are_not_cut() -> None:
    text = "batch-norm-layers " * 20
    broken = textwrap.wrap(text, WIDTH)
    assert any(line.endswith("-") for line in broken)  # as textwrap would by itself
    assert not any(line.endswith("-") for line in wrapped(text))


def test_what_stands_before_the_colon_has_the_colour() -> None:
    [line] = wrapped("error: dead units: 3", Style(colour=True), "error", indent=2)
    assert line == "  \x1b[31merror\x1b[0m: dead units: 3"
    [line] = wrapped("all is well", Style(colour=True), "good")
    assert line == "\x1b[32mall is well\x1b[0m"


def test_only_the_first_line_has_it() -> None:
    lines = list(wrapped(f"fix: {'word ' * 40}", Style(colour=True), "info"))
    assert len(lines) > 1
    assert ["\x1b" in line for line in lines] == [True] + [False] * (len(lines) - 1)


def test_line_breaks_become_spaces_and_nothing_gives_no_line() -> None:
    assert list(wrapped("one\ntwo")) == ["one two"]
    assert list(wrapped("", Style(colour=True), "error")) == []


def test_a_word_that_no_line_holds_begins_on_a_line_of_its_own() -> None:
    path = f"nethook.replay('/tmp/{'x' * 40}/run.db',"
    lines = list(wrapped(f"step 1: it overflows. {path} model) runs it again.", Style(width=40)))
    assert lines[0] == "step 1: it overflows."
    assert lines[1].startswith("  nethook.replay('/tmp/x")
    assert all(len(line) <= 40 for line in lines)
    assert "".join(line.strip() for line in lines[1:]).startswith(path)
