"""The rule `dead-units`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import ILL


def test_a_threshold_can_be_changed() -> None:
    made = ILL["dead-units"]
    assert made().found("dead-units", share=0.7)
    assert not made().found("dead-units", share=0.9)
