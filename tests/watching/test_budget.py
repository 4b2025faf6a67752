"""The budget: what is measured in which step, from what it was seen to cost."""

from __future__ import annotations

import itertools

import pytest

from nethook.watching import budget as module
from nethook.watching.budget import ALLOWANCE, GRADS, LOOK, MOST, OTHER, OUTPUTS, Budget


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests turn."""

    class Clock:
        now = 100.0

        def perf_counter(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


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
    budget = Budget(None)
    assert run(budget, clock, 500) == [500] * 4
    assert budget.every == 1


def test_the_share_is_kept_in_the_long_run(clock):
    budget = Budget(0.03)
    run(budget, clock, 3000)
    before, then = budget.own, clock.now
    run(budget, clock, 3000)
    share = (budget.own - before) / (clock.now - then - (budget.own - before))
    assert 0.01 < share <= 0.031
    assert budget.own <= ALLOWANCE + 0.031 * (budget.elapsed - budget.own)


def test_a_run_begins_in_detail(clock):
    budget = Budget(0.03)
    measured = run(budget, clock, 16)
    assert measured == [16] * 4


def test_quantities_take_turns_before_steps_are_left_out(clock):
    budget = Budget(0.03)
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
    budget = Budget(0.03)
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
    budget = Budget(0.001)
    run(budget, clock, 4000, cost=(0.1, 0.1, 0.1, 0.1))
    assert budget.every == MOST
    measured = run(budget, clock, 2 * MOST, cost=(0.1, 0.1, 0.1, 0.1))
    assert all(2 <= each <= 3 for each in measured)  # steps double at 4,096


def test_when_steps_grow_longer_more_is_measured(clock):
    budget = Budget(0.03)
    run(budget, clock, 3000)
    thin = budget.every
    run(budget, clock, 3000, step=1.0)
    assert budget.every < thin


def test_quantities_that_are_not_wanted_are_never_due(clock):
    budget = Budget(0.03, ("outputs",))
    measured = run(budget, clock, 100)
    assert measured[GRADS] == 0
    assert measured[OUTPUTS] > 0


def test_the_writer_is_held_back(clock):
    budget = Budget(0.03)
    assert budget.may_write()
    budget.writer_took(ALLOWANCE + 0.01)
    assert not budget.may_write()
    clock.now += 10
    assert budget.may_write()
    assert budget.overhead == pytest.approx((ALLOWANCE + 0.01) / 10)
