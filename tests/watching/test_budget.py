"""The budget: what is measured in which step, from what it was seen to cost."""

from __future__ import annotations

import itertools

import pytest

from nethook.watching.budget import (
    ALLOWANCE,
    FAR,
    GRADS,
    LOOK,
    MOST,
    OTHER,
    OUTPUTS,
    PAID_BACK,
    WHOLE,
    Budget,
)


class Clock:
    """A clock that tests turn."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def run(budget, clock, steps, step=0.010, cost=(0.002, 0.002, 0.0005, 0.0015), fixed=0.00005):
    """Steps of a training: `step` seconds each, and what each quantity costs when it is due."""
    measured = [0] * 4
    for _ in range(steps):
        clock.now += step
        for at in range(4):
            if budget.due[at]:
                budget.spent[at] += cost[at]
                clock.now += cost[at]
                measured[at] += 1
        budget.spent[OTHER] += fixed
        clock.now += fixed
        budget.step_ended()
    return measured


def test_without_a_budget_everything_is_due_always(clock):
    budget = Budget(None, now=clock)
    assert run(budget, clock, 500) == [500] * 4
    assert budget.every == 1


def test_the_share_is_kept_in_the_long_run(clock):
    budget = Budget(0.03, now=clock)
    run(budget, clock, 3000)
    before, then = budget.own, clock.now
    run(budget, clock, 3000)
    share = (budget.own - before) / (clock.now - then - (budget.own - before))
    assert 0.01 < share <= 0.031
    assert budget.own <= ALLOWANCE + 0.031 * (budget.elapsed - budget.own)


def test_a_run_begins_in_detail(clock):
    budget = Budget(0.03, now=clock)
    measured = run(budget, clock, 16)
    assert measured == [16] * 4


def test_quantities_take_turns_before_steps_are_left_out(clock):
    budget = Budget(0.03, now=clock)
    budget.every = 4
    budget._next_whole = budget._next_sure = 1000  # see the next test
    seen = []
    for _ in range(8):
        budget.step_ended()
        seen.append(sum(budget.due))
        budget._until_look = LOOK
    assert seen == [1] * 8
    budget.every = 8
    seen = []
    for _ in range(16):
        budget.step_ended()
        seen.append(sum(budget.due))
        budget._until_look = LOOK
    assert sorted(set(seen)) == [0, 1]
    assert sum(seen) == 8


def test_the_course_of_a_short_run_is_measured_however_thin_the_rest(clock):
    budget = Budget(0.03, now=clock)
    budget.every = MOST
    whole = []
    for step in range(400):
        budget.step_ended()
        budget._until_look = LOOK
        if all(budget.due):
            whole.append(step)
    assert 30 < len(whole) < 60
    assert all(after <= 1.15 * before + 2 for before, after in itertools.pairwise(whole))
    budget.spent[0] = 10.0  # far above the budget: only where the steps have doubled
    whole = []
    for step in range(400, 1200):
        budget.step_ended()
        budget._until_look = LOOK
        if all(budget.due):
            whole.append(step + 1)
    assert whole == [512, 1024]


def test_what_is_dear_is_measured_now_and_then(clock):
    budget = Budget(0.001, now=clock)
    run(budget, clock, 4000, cost=(0.1, 0.1, 0.1, 0.1))
    assert budget.every == MOST
    measured = run(budget, clock, 2 * MOST, cost=(0.1, 0.1, 0.1, 0.1))
    assert all(2 <= each <= 3 for each in measured)  # steps double at 4,096


def test_when_steps_grow_longer_more_is_measured(clock):
    budget = Budget(0.03, now=clock)
    run(budget, clock, 3000)
    thin = budget.every
    run(budget, clock, 3000, step=1.0)
    assert budget.every < thin


def test_quantities_that_are_not_wanted_are_never_due(clock):
    budget = Budget(0.03, ("outputs",), clock)
    measured = run(budget, clock, 100)
    assert measured[GRADS] == 0
    assert measured[OUTPUTS] > 0


def test_the_writer_is_held_back(clock):
    budget = Budget(0.03, now=clock)
    assert budget.may_write()
    budget.writer_took(ALLOWANCE + 0.01)
    assert not budget.may_write()
    clock.now += 10
    assert budget.may_write()
    assert budget.overhead == pytest.approx((ALLOWANCE + 0.01) / 10)


def test_the_opening_ends_with_the_allowance(clock):
    budget = Budget(0.03, now=clock)
    cost = 0.00605  # of a step
    run(budget, clock, 16)
    assert budget.costs.in_opening
    run(budget, clock, 8)
    assert not budget.costs.in_opening
    assert budget.costs.opening == pytest.approx(24 * cost)
    assert budget.every > 1
    run(budget, clock, 1000)
    assert budget.costs.opening == pytest.approx(24 * cost)
    assert budget.costs.steady == pytest.approx(budget.own - 24 * cost)


def test_without_a_budget_there_is_an_opening_too(clock):
    budget = Budget(None, now=clock)
    run(budget, clock, 24)
    assert not budget.costs.in_opening
    run(budget, clock, 24)
    assert budget.costs.steady_overhead == pytest.approx(0.605)


def test_time_that_was_saved_is_not_saved_for_ever(clock):
    budget = Budget(0.03, now=clock)
    cheap = (1e-4, 1e-4, 1e-4, 1e-4)
    run(budget, clock, 4000, step=0.1, cost=cheap, fixed=0)  # 12 s of budget, 1.6 s of them used
    assert budget.every == 1
    before = budget.own
    run(budget, clock, 1000, step=0.01, cost=(2e-3,) * 4, fixed=0)
    # The budget of these steps and what may be saved, not the ten seconds of before.
    assert budget.own - before < 0.03 * 10 + 0.03 * 0.1 * PAID_BACK + 0.1


def test_steps_too_short_for_the_budget_are_forgotten(clock):
    budget = Budget(0.03, now=clock)
    run(budget, clock, 100_000, step=1e-4, fixed=5e-5)  # 50 % for ten seconds
    assert budget.every == MOST
    run(budget, clock, 2 * MOST, step=1.0, cost=(0.01,) * 4)
    assert budget.every <= 4


def test_what_the_writer_takes_for_a_measurement_is_part_of_its_cost(clock):
    """Held against steps in general, it made `every` swing between 2 and far."""
    budget = Budget(0.03, now=clock)
    written, seen = 0.0, []
    for _ in range(6000):
        if any(budget.due):
            written += 3e-4
            budget.writer_took(written)
        run(budget, clock, 1, step=0.005, cost=(1e-4,) * 4, fixed=2e-5)
        seen.append(budget.every)
    settled = seen[2000:]
    assert max(settled) <= 2 * min(settled)
    assert max(settled) <= FAR


def test_steps_that_pass_quietly_are_the_ones_that_step_by_step_have_nothing_due(clock):
    """`still` and `passed`, against a budget that is asked after every step."""
    slow, quick = Clock(), Clock()
    one, other = Budget(0.03, now=slow), Budget(0.03, now=quick)
    left = passed = 0
    for _ in range(5000):
        assert one.due == other.due or (left and not any(one.due))
        assert left == 0 or not one.looks
        run(one, slow, 1, step=0.002)
        if left:  # as the fast path does: told later, all at once
            left -= 1
            passed += 1
            other.spent[OTHER] += 0.00005
            quick.now += 0.00205
            continue
        if passed:
            other.passed(passed)
            passed = 0
        run(other, quick, 1, step=0.002)
        left = 0 if other.looks else other.still()
    assert one.every == other.every > 1


def test_the_constants_fit_each_other():
    assert MOST % 2 == 0
    assert PAID_BACK >= 16 * LOOK
    assert WHOLE > ALLOWANCE


def test_what_it_has_cost_is_plain_data(clock):
    budget = Budget(0.03, now=clock)
    budget.started(0.25)
    clock.now += 60  # data is loaded
    budget.training_begins()
    run(budget, clock, 100)
    budget.training_ends()
    clock.now += 5
    budget.closed(0.5)
    cost = budget.as_dict()
    assert cost["every"] == budget.every
    assert cost["seconds"] == pytest.approx(100 * 0.01 + budget.own)
    assert cost["overhead"] == pytest.approx(budget.own / 1.0)
    assert cost["total_seconds"] == pytest.approx(0.25 + budget.own + 0.5)
