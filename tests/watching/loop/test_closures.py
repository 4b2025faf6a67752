"""The closure of a step: found, replaced, and followed by what reads its gradients."""

from __future__ import annotations

import pytest

from nethook.watching.loop.closures import after_closure, closure_of, with_closure


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
    made = after_closure(
        lambda: seen.append("closure") or 5, lambda: seen.append("then"), seen.append
    )
    assert made() == 5
    assert seen == ["closure", "then"]


def test_a_closure_that_raises_is_told_and_raises():
    seen = []

    def closure():
        raise KeyError("odd")

    with pytest.raises(KeyError):
        after_closure(closure, lambda: seen.append("then"), seen.append)()
    assert [type(error) for error in seen] == [KeyError]
