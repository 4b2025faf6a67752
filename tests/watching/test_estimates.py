"""What a step takes, and what each quantity adds to it."""

from __future__ import annotations

import pytest

from nethook.watching.costs import GRADS, OTHER, OUTPUTS, Costs
from nethook.watching.estimates import KEPT, LATEST, Estimates


class Clock:
    def __init__(self):
        self.now = 50.0

    def __call__(self):
        return self.now


@pytest.fixture
def made():
    clock = Clock()
    costs = Costs(clock)
    return clock, costs, Estimates(costs)


def steps(made, count, *, step=0.01, fixed=0.001, outputs=0.0, grads=0.0):
    clock, costs, known = made
    for _ in range(count):
        costs.spent[OTHER] += fixed
        costs.spent[OUTPUTS] += outputs
        costs.spent[GRADS] += grads
        clock.now += step + fixed + outputs + grads
        due = [outputs > 0, grads > 0, False, False]
        known.steps_ended(1, due if any(due) else None)


def test_means_of_the_steps_since_the_last_look(made):
    known = made[2]
    steps(made, 6)
    steps(made, 2, outputs=0.004)
    known.look()
    assert known.step == pytest.approx(0.01)
    assert known.fixed == pytest.approx(0.001)
    assert known.quantities == [pytest.approx(0.004), 0, 0, 0]


def test_the_latest_mean_counts_for_half(made):
    known = made[2]
    steps(made, 4, outputs=0.004)
    known.look()
    steps(made, 4, outputs=0.008, grads=0.002, step=0.02, fixed=0.003)
    known.look()
    new, old = LATEST, 1 - LATEST
    assert known.quantities[:2] == [pytest.approx(new * 0.008 + old * 0.004), pytest.approx(0.002)]
    assert known.step == pytest.approx(new * 0.02 + old * 0.01)
    assert known.fixed == pytest.approx(new * 0.003 + old * 0.001)
    steps(made, 4)
    known.look()
    assert known.quantities[1] == pytest.approx(0.002)  # nothing was learned of it


def test_steps_that_pass_quietly_count(made):
    clock, costs, known = made
    clock.now += 100 * 0.01 + 0.05
    costs.spent[OTHER] += 0.05
    known.steps_ended(100)
    known.look()
    assert known.step == pytest.approx(0.01)
    assert known.fixed == pytest.approx(0.0005)


def test_what_the_writer_takes_for_a_step_that_measures(made):
    _, costs, known = made
    assert known.written == 0.0
    steps(made, 4, outputs=0.001, grads=0.001)
    steps(made, 4)
    costs.writer = 0.008
    known.look()
    assert known.written == pytest.approx(0.002)
    steps(made, 8)
    costs.writer = 0.012  # it was late
    known.look()
    assert known.written == pytest.approx((KEPT * 0.008 + 0.004) / (KEPT * 4))


def test_seconds_since_the_last_look(made):
    _, costs, known = made
    steps(made, 8, outputs=0.001)
    known.look()
    assert known.since_look() == (0.0, 0.0)
    steps(made, 5, outputs=0.002)
    costs.writer += 0.02
    costs.doctor += 0.03
    training, cost = known.since_look()
    assert training == pytest.approx(5 * 0.01)
    assert cost == pytest.approx(5 * 0.003 + 0.05)


def test_time_that_is_left_out_is_no_part_of_a_step(made):
    clock, _, known = made
    clock.now += 7
    known.training_begins()
    steps(made, 4)
    clock.now += 3
    known.leave_out(3)
    known.look()
    assert known.step == pytest.approx(0.01)
