"""Calls that are under way: the outermost one, and what an exception leaves behind."""

from __future__ import annotations

from nethook.watching.clock.calls import Calls


def test_the_first_of_calls_inside_each_other_is_the_outermost():
    calls = Calls()
    assert [calls.begins(model) for model in "abc"] == [True, False, False]
    assert calls.outermost == "a"
    assert [calls.ends() for _ in range(3)] == [False, False, True]
    assert calls.begins("b")
    assert calls.outermost == "b"


def test_a_call_that_was_interrupted_leaves_those_that_are_under_way():
    calls = Calls()
    for model in "abc":
        calls.begins(model)
    calls.interrupted(1)
    assert not calls.begins("d")
    calls.interrupted(0)
    assert calls.begins("e")


def test_an_end_without_a_beginning_makes_no_difference():
    calls = Calls()
    assert calls.ends()
    assert calls.depth == 0
