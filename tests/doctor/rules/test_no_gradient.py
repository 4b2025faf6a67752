"""The rule `no-gradient`: when it reports, and when it does not."""

from __future__ import annotations

from typing import Any

from tests.doctor.ill import cut, well


def test_five_steps_without_a_gradient() -> None:
    (finding,) = cut(with_grad=0, moved=[0, 5], steps=5).found("no-gradient")
    assert finding.sites == ("a.weight",)
    assert "`a.weight` never got a gradient in 5 steps" in finding.message
    assert "between `a` and the loss" in finding.fix
    assert not cut(with_grad=0, moved=[0, 4], steps=4).found("no-gradient")


def test_a_module_that_is_called_in_less_than_half_of_the_steps() -> None:
    assert cut(with_grad=0, moved=[0, 5], steps=400).found("no-gradient")  # 200 calls
    assert not cut(with_grad=0, moved=[0, 5], steps=401).found("no-gradient")


def test_frozen_by_accident_and_on_purpose() -> None:
    facts: dict[str, Any] = {"with_grad": 0, "moved": [0, 5], "requires_grad": False}
    (finding,) = cut(**facts).found("no-gradient")
    assert "requires_grad is False" in finding.message
    made = well().module("a").module("b").parameter("a.weight", **facts).parameter("b.weight")
    assert not made.found("no-gradient")  # a backbone, in a run that learns
