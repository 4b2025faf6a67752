"""What was examined, in words."""

from __future__ import annotations

import pytest

from nethook.text.examined import examined_lines


def result(outcome: str, name: str = "samples are independent", reason: str = "") -> dict:
    return {"experiment": name, "outcome": outcome, "reason": reason, "facts": {}}


def test_seconds_and_experiments():
    info = {
        "examination": {"seconds": 0.42, "not_examined": []},
        "examined": [result("fine"), result("found"), result("not applicable")],
    }
    assert list(examined_lines(info)) == ["examined in 0.4 s: 2 experiments on copies"]


def test_little_time():
    info = {"examination": {"seconds": 0.01}, "examined": [result("question")]}
    assert list(examined_lines(info)) == ["examined in less than 0.1 s: 1 experiment on copies"]


def test_what_was_not_examined():
    info = {"examination": {"seconds": 0.1, "not_examined": ["its forward prints (a.py:3)"]}}
    assert list(examined_lines(info)) == ["not examined: its forward prints (a.py:3)"]


def test_a_failure_is_told():
    info = {"examination": {}, "examined": [result("failed", "it can learn", "ValueError: no")]}
    assert list(examined_lines(info)) == ["not examined: it can learn failed (ValueError: no)"]


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"examination": None},
        {"examination": 3, "examined": "all"},
        {"examination": {"seconds": "long", "not_examined": 4}, "examined": [1, None]},
    ],
)
def test_a_file_may_say_anything(info):
    assert list(examined_lines(info)) == []


def test_many_reasons_are_cut():
    info = {"examination": {"not_examined": list("abcde")}}
    assert list(examined_lines(info)) == ["not examined: a; b; c and 2 more"]
