"""The rule `negative-loss`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.synthetic import Made


def test_a_loss_that_is_maximised_by_an_option() -> None:
    made = Made().record(kind="mse", value=3.0).event("groups", groups=[{"maximize": True}])
    (finding,) = made.found("negative-loss")
    assert "maximize=True" in finding.message
