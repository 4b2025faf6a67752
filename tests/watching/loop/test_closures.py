"""The closure of a step: found, replaced, and followed by what reads its gradients."""

from __future__ import annotations

import pytest

from nethook.watching.fail_open import Guard
from nethook.watching.loop.closures import closure_of, read_after, with_closure


def test_a_closure_is_found_and_replaced_wherever_it_was_given():
    def closure():
        return 1

    def other():
        return 2

    assert closure_of(("optimizer", closure), {}) is closure
    assert closure_of(("optimizer",), {"closure": closure}) is closure
    assert closure_of(("optimizer",), {}) is None
    assert closure_of(("optimizer", 3), {}) is None
    assert with_closure(("optimizer", closure, 5), {}, other) == (("optimizer", other, 5), {})
    assert with_closure(("o",), {"closure": closure}, other) == (("o",), {"closure": other})


def test_what_comes_after_a_closure_is_called_once_it_has_returned():
    seen = []
    guard = Guard(lambda *_: None, lambda: None)
    made = read_after(
        lambda: seen.append("closure") or 5, lambda: seen.append("read"), guard, seen.append
    )
    assert made() == 5
    assert seen == ["closure", "read"]
    guard.alive = False
    assert made() == 5
    assert seen == ["closure", "read", "closure"]


def test_what_fails_after_a_closure_stays_inside():
    told = []
    guard = Guard(lambda name, *_: told.append(name), lambda: None)
    guard.silent = True

    def read():
        raise ValueError("odd")

    assert read_after(lambda: 5, read, guard, told.append)() == 5
    assert told == ["the closure of a step"]


def test_a_closure_that_raises_is_told_and_raises():
    seen = []

    def closure():
        raise KeyError("odd")

    with pytest.raises(KeyError):
        guard = Guard(lambda *_: None, lambda: None)
        read_after(closure, lambda: seen.append("read"), guard, seen.append)()
    assert [type(error) for error in seen] == [KeyError]
