"""The rule `missing-step`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.synthetic import Made


def test_eight_passes_without_a_step() -> None:
    (finding,) = Made(8).loop("optimizer_steps", 0).found("missing-step")
    assert finding.message.startswith("8 backward passes computed gradients")
    assert finding.evidence["optimizer steps"].value == 0
    assert not Made(7).loop("optimizer_steps", 0).found("missing-step")


def test_one_step_is_enough() -> None:
    assert not Made(8).loop("optimizer_steps", [0] * 7 + [1]).found("missing-step")


def test_steps_that_a_scaler_left_out() -> None:
    made = Made(8).loop("optimizer_steps", 0).loop("skipped_steps", 1)
    assert not made.found("missing-step")
