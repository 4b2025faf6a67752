"""What taps in compiled graphs cost in hidden time: steps with taps against steps without."""

from __future__ import annotations

import pytest

from nethook.watching.budget import GRADS, OUTPUTS, Budget
from nethook.watching.compiled_cost import ENOUGH, KEPT, HiddenCost


def steps(cost: HiddenCost, seconds: list[float], *, taps: bool, own: float = 0.0) -> None:
    for took in seconds:
        if taps:
            cost.shown()
        cost.step_ended(took, own)


def test_where_nothing_is_compiled_nothing_is_held_against_the_budget():
    budget = Budget(0.03)
    cost = HiddenCost(budget)
    steps(cost, [1.0] * 20, taps=False)
    assert (cost.known, cost.seconds, budget.own, budget.together) == (False, 0.0, 0.0, False)


def test_the_difference_of_medians_is_the_cost():
    cost = HiddenCost(Budget(0.03))
    steps(cost, [0.5, 0.012, 0.012, 0.013, 0.011], taps=True)
    assert cost.seconds == 0.0  # no step without taps yet
    steps(cost, [0.010, 0.010, 9.0, 0.009, 0.010], taps=False)
    assert cost.seconds == pytest.approx(0.012 - 0.010)


def test_it_is_held_against_outputs_and_gradients_in_equal_parts():
    budget = Budget(0.03)
    cost = HiddenCost(budget)
    steps(cost, [0.014] * ENOUGH, taps=True)
    steps(cost, [0.010] * ENOUGH, taps=False)
    assert budget.own == 0.0
    steps(cost, [0.014], taps=True)
    assert budget.spent[OUTPUTS] == budget.spent[GRADS] == pytest.approx(0.002)
    assert budget.together  # both are in the graph, or neither


def test_own_time_is_not_hidden_time():
    cost = HiddenCost(Budget(0.03))
    steps(cost, [0.014] * ENOUGH, taps=True, own=0.004)
    steps(cost, [0.010] * ENOUGH, taps=False)
    assert cost.seconds == pytest.approx(0.0, abs=1e-12)


def test_a_negative_difference_is_none():
    cost = HiddenCost(Budget(0.03))
    steps(cost, [0.008] * ENOUGH, taps=True)
    steps(cost, [0.010] * ENOUGH, taps=False)
    assert cost.seconds == 0.0


def test_steps_without_taps_are_asked_for_until_there_are_enough():
    cost = HiddenCost(Budget(0.03))
    assert not cost.without_taps()
    steps(cost, [0.01] * ENOUGH, taps=True)
    assert cost.without_taps()
    steps(cost, [0.01] * ENOUGH, taps=False)
    assert not cost.without_taps()
    unlimited = HiddenCost(Budget(None))
    steps(unlimited, [0.01] * ENOUGH, taps=True)
    assert not unlimited.without_taps()  # everything is measured in every step


def test_only_the_latest_steps_count():
    cost = HiddenCost(Budget(0.03))
    steps(cost, [5.0] * KEPT, taps=True)
    steps(cost, [0.010] * ENOUGH, taps=False)
    steps(cost, [0.012] * KEPT, taps=True)
    assert cost.seconds == pytest.approx(0.002)


def test_a_step_in_which_something_was_compiled_is_not_compared():
    time = [10.0]
    budget = Budget(0.03, now=lambda: time[0])
    cost = HiddenCost(budget)
    time[0] = 11.0
    cost.compiles(True)
    time[0] = 14.0
    cost.compiles(False)
    assert budget.elapsed == 1.0  # three seconds are nobody's
    steps(cost, [9.0], taps=True)
    steps(cost, [0.012] * (ENOUGH - 1), taps=True)
    steps(cost, [0.010] * ENOUGH, taps=False)
    assert cost.seconds == 0.0  # one step with taps is missing
