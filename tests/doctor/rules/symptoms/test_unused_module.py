"""The rule `unused-module`: when it reports, and when it does not."""

from __future__ import annotations

from typing import Any

from tests.doctor.synthetic import Made


def unused(steps: int = 200, **facts: Any) -> Made:
    made = Made(steps).module("c", first_call=None, parameters=["c.weight"])
    return made.parameter("c.weight", **{"with_grad": 0, **facts})


def test_a_module_that_is_never_called() -> None:
    (finding,) = unused(5).found("unused-module")
    assert finding.severity == "info"
    assert finding.message.startswith("`c` was never called in 5 steps")
    assert not unused(4).found("unused-module")


def test_weights_that_are_used_without_a_call() -> None:
    assert not unused(with_grad=1).found("unused-module")


def test_weights_that_are_not_trained() -> None:
    assert not unused(requires_grad=False).found("unused-module")
