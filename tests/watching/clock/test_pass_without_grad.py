"""A pass without gradient."""

from __future__ import annotations

from nethook.watching.clock.pass_without_grad import PassWithoutGrad


def test_a_pass_begins_once_and_is_an_evaluation_only_if_that_is_said_of_it():
    no_grad = PassWithoutGrad()
    assert (no_grad.begins(), no_grad.begins()) == (True, False)
    no_grad.phase = "eval"
    assert (no_grad.begins(), no_grad.phase) == (False, "eval")
    no_grad.open = False
    assert (no_grad.begins(), no_grad.phase) == (True, "aux")
