"""Texts on their way into a run file and out of it."""

from __future__ import annotations

import json
import math
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.errors import NotARunError
from nethook.runs.format.texts import clean, for_file, from_file, from_json, to_json


@given(st.text())
def test_nothing_that_is_shown_can_move_a_cursor(text: str) -> None:
    shown = clean(text)
    assert not any(ord(char) < 32 and char != "\n" for char in shown)
    assert not any(char in shown for char in "\x7f\x9b\u202e\u2066\u200f\ufeff")


def test_control_characters_are_spelt_out() -> None:
    assert clean("a\x1b[2Jb\u202ec\nd") == "a\\u001b[2Jb\\u202ec\nd"


@pytest.mark.parametrize("text", ["plain", "umlaut ü", "\ud800 half", "nul \x00 byte", 5, None])
def test_everything_becomes_a_text_that_sqlite_takes(text: object) -> None:
    written = for_file(text)
    written.encode("utf-8")
    assert "\x00" not in written


def test_an_endless_text_is_cut() -> None:
    assert len(for_file("x" * 10**6)) < 30_000
    assert "too_long" in json.loads(to_json(["x" * 1000] * 10_000))


class Colour(IntEnum):
    RED = 3


def test_plain_data_comes_back() -> None:
    data = {"a": [1, 2.5, None, True, "x"], "n": float("inf"), "t": (1, 2)}
    assert from_json(to_json(data)) == {"a": [1, 2.5, None, True, "x"], "n": math.inf, "t": [1, 2]}
    assert math.isnan(from_json(to_json(math.nan)))


def test_what_is_not_plain_becomes_plain() -> None:
    loop: list[object] = []
    loop.append(loop)
    odd = {
        "array": np.arange(3),
        "number": np.float32(1.5),
        "enum": Colour.RED,
        5: {1},
        "s": slice(1),
    }
    assert from_json(to_json(odd)) == {
        "array": [0, 1, 2],
        "number": 1.5,
        "enum": 3,
        "5": [1],
        "s": "slice(None, 1, None)",
    }
    assert isinstance(from_json(to_json(loop)), list)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "1" * 10_000, b"{}", None, 5])
def test_bad_json_is_refused(text: object) -> None:
    with pytest.raises(NotARunError):
        from_json(text)


def test_texts_inside_json_are_cleaned() -> None:
    assert from_json('{"\\u001b[2J": ["\\u0007"]}') == {"\\u001b[2J": ["\\u0007"]}


def test_a_number_is_no_text() -> None:
    with pytest.raises(NotARunError, match="int where a text belongs"):
        from_file(5)
