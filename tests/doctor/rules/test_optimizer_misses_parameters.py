"""The rule `optimizer-misses-parameters`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import cut


def test_three_steps_with_a_gradient() -> None:
    (finding,) = cut(groups=[], moved=[0, 3], with_grad=3).found("optimizer-misses-parameters")
    assert finding.sites == ("a.weight",)
    assert "That is 256 of 512 weights." in finding.message
    missed = cut(groups=[], moved=[0, 3], with_grad=2)
    assert not missed.found("optimizer-misses-parameters")


def test_what_was_never_measured() -> None:
    assert not cut(groups=[], moved=[0, 0]).found("optimizer-misses-parameters")


def test_without_any_step_another_rule_reports() -> None:
    made = cut(groups=[], moved=[0, 3]).loop("optimizer_steps", 0)
    assert not made.found("optimizer-misses-parameters")
