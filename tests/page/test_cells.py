"""Sections in a cell: the words of the page, with pictures, and a style that stays inside."""

from __future__ import annotations

import html
import re

import pytest

import nethook
from nethook.errors import NoSuchSiteError, OptionError
from nethook.page.cells import SECTIONS, Cell
from nethook.page.sections.cost import cost
from nethook.page.sections.findings import findings
from nethook.page.sections.ran import ran
from nethook.page.sections.verdict import MOST, verdict
from tests.figures.shared import hostile, training
from tests.page.shown import in_report, text_of


@pytest.mark.parametrize(
    ("name", "section"),
    [
        ("verdict", lambda subject: verdict(subject, MOST)),
        ("findings", findings),
        ("ran", ran),
        ("cost", cost),
    ],
)
def test_the_words_are_those_of_the_report(name, section):
    shown = Cell(training(), [name], None, "light")._repr_html_()
    bare = re.sub(r"<style>.*?</style>|<[^>]*>", " ", shown, flags=re.DOTALL)
    assert " ".join(html.unescape(bare).split()) == text_of(section(in_report()), live=False)


def test_nothing_named_is_the_verdict_and_the_curves():
    cell = nethook.figures.show(training())
    assert repr(cell) == f"<Sections of {training().name!r}: verdict, loop>"
    shown = cell._repr_html_()
    assert "1 error, 1 warning, 1 note" in shown
    assert shown.count('src="data:image/svg+xml;base64,') == 1
    assert 'alt="loss' in shown


@pytest.mark.parametrize("name", SECTIONS)
def test_no_section_needs_a_script_or_a_server(name):
    shown = Cell(training(), [name], None, "dark")._repr_html_()
    assert 'data-theme="dark"' in shown
    assert "<script" not in shown
    assert 'id="frame-' not in shown  # nobody would draw in it
    assert re.findall(r'href="', shown) == []


def test_a_layer_has_its_figures():
    shown = nethook.figures.show(training(), at="block.relu2")._repr_html_()
    assert shown.count("<img ") >= 3
    assert "block.relu2" in shown
    assert 'class="verdict' not in shown


def test_the_style_is_of_the_cell_alone():
    (style,) = re.findall(
        r"<style>(.*?)</style>", nethook.figures.show(training())._repr_html_(), re.S
    )
    assert style.startswith(".nethook-cell {")
    assert style.endswith("}")
    assert style.count("{") == style.count("}")
    assert ":root" not in style
    assert not re.search(r"^\s*body\b", style, re.MULTILINE)


def test_texts_of_strangers_stay_texts():
    shown = nethook.figures.show(hostile(), "verdict", "findings", "model", "ran")._repr_html_()
    assert "<script" not in shown
    assert "<img src=x" not in shown
    assert "<svg onload" not in shown


def test_what_is_not_there_is_said():
    with pytest.raises(OptionError, match=r"`sections` must be some of verdict, .*; got 'losses'"):
        nethook.figures.show(training(), "losses")
    with pytest.raises(OptionError, match="`theme` must be one of light, dark; got 'blue'"):
        nethook.figures.show(training(), theme="blue")
    with pytest.raises(NoSuchSiteError, match="no outputs of a layer 'nowhere'"):
        nethook.figures.show(training(), at="nowhere")
