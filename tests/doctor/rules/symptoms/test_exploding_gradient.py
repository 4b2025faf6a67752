"""The rule `exploding-gradient`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.rules.symptoms import exploding_gradient
from tests.doctor.ill import stuck
from tests.doctor.synthetic import Made


def peak(size: float) -> Made:
    return stuck().loop("grad_norm", np.r_[np.full(199, 2.0), size])


def test_a_norm_beyond_a_hundred_times_the_usual_one() -> None:
    (finding,) = peak(201.0).found("exploding-gradient")
    assert finding.evidence["largest norm by the usual one"].value == pytest.approx(100.5)
    assert "is 2 as a rule and was 201 at step 199" in finding.message
    assert not peak(199.0).found("exploding-gradient")


def test_a_norm_that_is_small_beside_the_weights() -> None:
    made = peak(201.0).parameter("w", elements=10_000).series("w", "params", rms=1.0)
    assert not made.found("exploding-gradient")  # 201 by sqrt(10,000)


def test_what_the_pre_flight_check_reports() -> None:
    finding = exploding_gradient.before_training("a", "z", 2000.0, 7)
    assert "2e+03 times larger at `a` than at `z`, over 7 layers" in finding.message
    assert finding.evidence["first layer by last"].threshold == 1e3
