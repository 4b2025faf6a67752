"""The rule `dead-units`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from nethook.doctor.rules import dead_units
from tests.doctor.ill import ILL, sparse, stuck
from tests.doctor.synthetic import Made


def test_three_in_ten_units() -> None:
    (finding,) = sparse(stuck(), 0.31).found("dead-units")
    assert finding.severity == "warning"
    assert finding.sites == ("act",)
    assert finding.evidence["share of dead units"].value == pytest.approx(0.31)
    assert not sparse(stuck(), 0.29).found("dead-units")
    assert sparse(stuck(), 0.51).found("dead-units")[0].severity == "error"


def test_a_bias_without_gradient_before_a_function() -> None:
    def made(share: float) -> Made:
        run = stuck().module("fc", activation="linear").parameter("fc.bias", shape=[10])
        return run.series("fc.bias", "param_grads", zero_share=share)

    (finding,) = made(0.4).found("dead-units")
    assert "`fc`: 4 of 10 units" in finding.message
    assert not made(0.2).found("dead-units")


def test_what_the_pre_flight_check_reports() -> None:
    counts = {"a": (31, 100), "b": (60, 100), "c": (1, 100)}
    finding = dead_units.before_training(counts, 16)
    assert finding.sites == ("a", "b")
    assert finding.severity == "error"
    assert "`b`: 60 of 100 units are dead: zero for each of 16 samples" in finding.message


def test_a_threshold_can_be_changed() -> None:
    made = ILL["dead-units"]
    assert made().found("dead-units", share=0.7)
    assert not made().found("dead-units", share=0.9)
