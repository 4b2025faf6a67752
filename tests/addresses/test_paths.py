"""Paths inside values: what is shown can be typed."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nethook.addresses.paths import Attribute, Item, parse_path, show_path
from nethook.errors import PatternError

identifiers = st.from_regex(r"[^\W\d]\w{0,5}", fullmatch=True)
plain_keys = st.one_of(st.text(max_size=5), st.integers())
keys = st.one_of(plain_keys, st.none(), st.binary(max_size=3), st.tuples(plain_keys, plain_keys))
steps = st.one_of(identifiers.map(Attribute), keys.map(Item))


@given(st.lists(steps, max_size=4).map(tuple))
@example((Item('a"b\\'),))
@example((Item("a\nb\r\0\x7f\u2028"),))
@example((Item("\ud800"),))
@example((Item("]"), Item("']"), Attribute("größe")))
def test_a_path_that_is_shown_is_read_again(path):
    assert parse_path(show_path(path)) == path


@given(st.lists(keys.map(Item), max_size=3).map(tuple))
def test_a_path_of_items_is_python(path):
    class Recorder:
        def __init__(self, keys=()):
            self.keys = keys

        def __getitem__(self, key):
            return Recorder((*self.keys, Item(key)))

    assert eval(f"value{show_path(path)}", {"value": Recorder()}).keys == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ("[0]", (Item(0),)),
        ("[-1]", (Item(-1),)),
        ('["logits"]', (Item("logits"),)),
        ("['logits']", (Item("logits"),)),
        (".logits", (Attribute("logits"),)),
        ('[0].past["k\\"1"][-2]', (Item(0), Attribute("past"), Item('k"1'), Item(-2))),
        ("[('user', 1)]", (Item(("user", 1)),)),
        ("._private", (Attribute("_private"),)),
    ],
)
def test_what_a_text_means(text, path):
    assert parse_path(text) == path


@pytest.mark.parametrize("path", [(Item("a\x1b[2J"),), (Item("a\nb"),)])
def test_what_is_shown_fits_on_a_line_and_moves_no_cursor(path):
    assert show_path(path).isprintable()


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("logits", "logits"),
        ("[0", "[0"),
        ("[a]", "[a]"),
        ("[0]x", "x"),
        (".", "."),
        (".0", ".0"),
        ("[]", "[]"),
        ("[[0]]", "[[0]]"),
        ("[01]", "[01]"),
        ('["\\x"]', '["\\x"]'),
        ('["a]', '["a]'),
        ("[0] [1]", " [1]"),
        ("[__import__('os')]", "[__import__('os')]"),
    ],
)
def test_anything_else_is_refused_where_it_begins(text, rest):
    with pytest.raises(PatternError) as caught:
        parse_path(text)
    assert str(caught.value) == (
        f'{text!r} is not a path inside a value: expected [0], ["key"] or .name at {rest!r}. '
        "Examples: '[0]', '.logits', '[\"hidden\"][1]'."
    )


@given(st.text("[]\"'\\.0a-\nxN{}", max_size=8))
@example('["\\x"]')
@example('["\\N{no such}"]')
@example("[00]")
@example("[01]")
def test_any_text_is_read_or_refused_with_a_pattern_error(text):
    try:
        path = parse_path(text)
    except PatternError:
        return
    assert parse_path(show_path(path)) == path


def test_a_keyword_of_python_may_name_a_field():
    assert keyword.iskeyword("from")
    assert parse_path(".from") == (Attribute("from"),)
