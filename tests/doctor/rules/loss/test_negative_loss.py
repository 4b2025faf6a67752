"""The rule `negative-loss`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.synthetic import Made


def test_an_error_that_is_negated() -> None:
    def made(kind: str, value: float) -> Made:
        return Made().record(kind=kind, negated=True, value=value)

    (finding,) = made("mse", -0.1).found("negative-loss")
    assert "mse cannot be below zero, and its negation is minimised" in finding.message
    assert finding.fix == "Leave the minus sign out: loss = mse(...)."
    assert not made("mse", 0.1).found("negative-loss")
    assert not made("other", -0.1).found("negative-loss")  # may be rightly negative


def test_half_of_the_records() -> None:
    made = Made().record(0, 1, kind="l1", negated=True, value=-1.0)
    assert made.record(2, 4, kind="l1", value=1.0).found("negative-loss")
    assert not made.record(8, kind="l1", value=1.0).found("negative-loss")


def test_a_loss_that_is_maximised_by_an_option() -> None:
    made = Made().record(kind="mse", value=3.0).event("groups", groups=[{"maximize": True}])
    (finding,) = made.found("negative-loss")
    assert "maximize=True" in finding.message
