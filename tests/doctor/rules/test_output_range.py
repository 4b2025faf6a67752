"""The rule `output-range`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.synthetic import Made


def test_the_error_of_a_bounded_output_tells_of_targets_that_were_not_kept() -> None:
    made = Made().record(kind="l1", chain=["Abs", "Sub", "Tanh"], value=28.0, target={})
    (finding,) = made.found("output-range")
    assert "28 away" in finding.message
    assert (
        not Made().record(kind="l1", chain=["Abs", "Sub", "Tanh"], value=1.0).found("output-range")
    )
