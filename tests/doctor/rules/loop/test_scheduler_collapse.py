"""The rule `scheduler-collapse`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.doctor.ill import stuck, well
from tests.doctor.synthetic import Made


def scheduled(peak_until: int, last: float = 1e-5) -> Made:
    rates = [0.1] * peak_until + [last] * (200 - peak_until)
    return stuck().loop("schedules", 1).rate(*rates)


def test_half_of_the_run_at_next_to_nothing() -> None:
    (finding,) = scheduled(100).found("scheduler-collapse")
    assert finding.first_step == 100
    assert "fell from 0.1 to 1e-05" in finding.message
    assert finding.evidence["part of the run that was left"].value == pytest.approx(0.5)
    assert not scheduled(101).found("scheduler-collapse")


def slow(last: float) -> Made:
    """It does its job, and had not done it when the rate fell."""
    made = well().loop("schedules", 1).rate(*[0.1] * 50, *[last] * 150)
    return made.loss(np.linspace(2.3, 0.3, 200))


def test_a_thousandth_of_the_peak_where_the_run_does_its_job() -> None:
    assert slow(0.9e-4).found("scheduler-collapse")
    assert not slow(1.1e-4).found("scheduler-collapse")


def test_a_hundredth_of_the_peak_where_nothing_was_learnt() -> None:
    (finding,) = scheduled(50, 1e-3).found("scheduler-collapse")
    assert "to a hundredth of its peak" in finding.message
    assert 'mode="max"' in finding.fix
    assert not scheduled(50, 1.2e-3).found("scheduler-collapse")
    assert not scheduled(101, 1e-3).found("scheduler-collapse")  # a usual decay by steps


def test_a_rate_that_no_scheduler_changed() -> None:
    made = stuck().rate(*[0.1] * 50, *[1e-5] * 150)
    assert not made.found("scheduler-collapse")


def zeroed(since: int, *, steps: int = 200) -> Made:
    """It has done its job before the rate is zero: that is no excuse."""
    made = well().loop("schedules", 1)
    return made.rate(*[0.1] * since, *[0.0] * (steps - since))


def test_a_rate_of_exactly_zero_for_a_third_of_the_run() -> None:
    (finding,) = zeroed(100).found("scheduler-collapse")
    assert finding.first_step == 100
    assert "exactly 0 since step 100 (0.1 before)" in finding.message
    assert "gamma" in finding.fix
    assert zeroed(139).found("scheduler-collapse")


def test_rates_that_are_zero_on_purpose() -> None:
    assert not zeroed(141).found("scheduler-collapse")  # a decay that ends a little early
    assert not zeroed(199).found("scheduler-collapse")  # a decay to zero at the end
    frozen = well().loop("schedules", 1).rate(*[0.0] * 200)
    assert not frozen.found("scheduler-collapse")  # a part that is not to move
    cycle = well().loop("schedules", 1).rate(*([0.1, 0.0] * 100))
    assert not cycle.found("scheduler-collapse")  # restarts
    assert not well().rate(*[0.1] * 50, *[0.0] * 150).found("scheduler-collapse")  # by hand
