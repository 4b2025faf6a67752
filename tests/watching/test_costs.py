"""The seconds of watching: start-up, opening, steady, closing; and by thread."""

from __future__ import annotations

import pytest

from nethook.watching.costs import GRADS, OTHER, OUTPUTS, Costs


class Clock:
    def __init__(self):
        self.now = 50.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_run_from_start_to_end(clock):
    costs = Costs(clock)
    clock.now += 0.5
    costs.started(0.5)
    clock.now += 30  # data is loaded
    costs.training_begins()
    costs.spent[OUTPUTS] += 0.06
    costs.spent[OTHER] += 0.04
    costs.writer = 0.02
    clock.now += 1.1
    assert costs.in_opening
    assert (costs.opening, costs.steady, costs.steady_overhead) == (pytest.approx(0.12), 0.0, None)
    costs.opening_ends()
    costs.opening_ends()
    costs.spent[GRADS] += 0.2
    costs.writer = 0.05
    costs.doctor = 0.07
    clock.now += 10.2
    costs.opening_ends()
    costs.training_ends()
    clock.now += 0.3
    costs.closing = 0.3
    assert not costs.in_opening
    assert costs.elapsed == pytest.approx(11.3)
    assert costs.training == pytest.approx(11.0)
    assert costs.as_dict() == {
        "overhead": pytest.approx(0.42 / 11.0),
        "seconds": pytest.approx(11.3),
        "watch_seconds": pytest.approx(0.3),
        "writer_seconds": 0.05,
        "doctor_seconds": 0.07,
        "start_up_seconds": 0.5,
        "opening_seconds": pytest.approx(0.12),
        "steady_seconds": pytest.approx(0.3),
        "closing_seconds": 0.3,
        "total_seconds": pytest.approx(0.5 + 0.12 + 0.3 + 0.3),
        "steady_overhead": pytest.approx(0.3 / 10.0),
    }


def test_a_further_step_costs_what_the_later_steps_have_cost(clock):
    """Steps get cheaper, as whole ones become rarer: the percentage says so, the seconds do not."""
    costs = Costs(clock)
    costs.training_begins()
    clock.now += 1.0
    costs.opening_ends()
    for second in range(1, 41):
        costs.spent[OUTPUTS] += 0.2 if second <= 10 else 0.02
        clock.now += 1.2 if second <= 10 else 1.02
        costs.looked_at()
    assert costs.steady == pytest.approx(10 * 0.2 + 30 * 0.02)
    assert costs.training == pytest.approx(41.0)
    assert costs.steady_overhead == pytest.approx(0.02)


def test_before_anything_has_passed(clock):
    costs = Costs(clock)
    assert (costs.overhead, costs.total, costs.steady_overhead) == (0.0, 0.0, None)
    costs.opening_ends()
    assert costs.steady_overhead is None  # no training since


def test_time_that_is_left_out_is_nobodys(clock):
    costs = Costs(clock)
    clock.now += 5
    costs.leave_out(4)
    costs.spent[OTHER] += 0.1
    assert costs.overhead == pytest.approx(0.1 / 0.9)


def test_after_the_end_no_time_passes(clock):
    costs = Costs(clock)
    clock.now += 2
    costs.training_ends()
    clock.now += 100
    costs.training_ends()
    assert costs.elapsed == 2.0
