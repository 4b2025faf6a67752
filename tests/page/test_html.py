"""The elements of views."""

from __future__ import annotations

import json

from dash import html

from nethook.page.html import (
    address,
    anchor,
    attributes,
    badge,
    empty_figure,
    facts,
    figure,
    fill,
    lines,
    place,
    said,
    select,
    slider,
    switch,
    table,
)
from tests.page.shown import text_of


def test_parts_are_put_into_their_places_and_figures_stay_parts() -> None:
    body = html.Div([html.H1("Title"), [place("text")], figure("curve", "Loss")])
    parts = {
        "text": {"tag": "t1", "nodes": ["hello"]},
        "curve": {"tag": "t2", "figure": {"data": []}},
    }
    fill(body, parts)
    assert body.children[1][0].children == ["hello"]
    assert getattr(body.children[1][0], "data-tag") == "t1"
    assert parts == {"text": {"tag": "t1"}, "curve": {"tag": "t2", "figure": {"data": []}}}


def test_texts_are_cut_and_their_control_characters_spelt_out() -> None:
    assert said("a" * 3000, 100) != "a" * 3000
    assert len(said("a" * 3000, 100)) <= 100
    assert "\x1b" not in said("\x1b[31mred")
    shown = lines("one\ntwo\x07")
    assert len([node for node in shown if isinstance(node, html.Br)]) == 1
    assert "\x07" not in text_of(shown)


def test_an_address_is_a_link_where_it_leads_somewhere() -> None:
    assert "href" not in text_of(address("fc1"))
    assert '"href": "/x"' in text_of(address("fc1", "/x"))
    assert '"href": "/y"' in text_of(anchor("text", "/y"))


def test_a_table_puts_numbers_to_the_right() -> None:
    shown = text_of(table(("name", "count"), [["a", "1"], ["b", "2"]], right=(1,)))
    assert shown.count('"className": "right"') == 3  # the head and two cells
    assert shown.count('"type": "Tr"') == 3


def test_controls_say_what_they_choose() -> None:
    label, choice = select("b", [("1", "one"), ("2", "two")], "2", "against").children
    assert label.children == "against"
    assert getattr(choice, "data-value") == "2"
    assert json.loads(getattr(choice, "data-options")) == [["1", "one"], ["2", "two"]]
    for on, pressed, after in ((True, "true", ""), (False, "false", "1")):
        button = switch("all", "all-time colours", on=on)
        assert getattr(button, "aria-pressed") == pressed
        assert getattr(button, "data-value") == after  # what a click makes of it
    assert slider("step", 1234, 0, "step").children[1].max == 1
    assert "1,234" in text_of(slider("step", 1234, 5000, "step"))


def test_facts_badges_and_attributes() -> None:
    shown = text_of(facts([("steps", "3"), ("loss", "2 → 1")]))
    assert shown.index("steps") < shown.index("loss")
    assert "error" in text_of(badge("1 error", "error"))
    assert attributes(data_param="x", aria_label=1) == {"data-param": "x", "aria-label": 1}


def test_an_empty_figure_says_why() -> None:
    assert "nothing yet" in str(empty_figure("nothing yet"))
