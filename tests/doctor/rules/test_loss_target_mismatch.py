"""The rule `loss-target-mismatch`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.synthetic import Made


def test_classes_of_which_no_batch_has_all() -> None:
    target = {"shape": [16, 1], "distinct": 7, "min": 0.0, "max": 8.0, "std": 2.8, "integral": True}
    made = Made()
    for step, most in enumerate([8.0, 9.0, 7.0, 9.0]):
        made.record(step, kind="mse", prediction={"shape": [16, 1]}, target={**target, "max": most})
    (finding,) = made.found("loss-target-mismatch")
    assert "the numbers of 10 classes" in finding.message
