"""The budget in simulated trainings, from 0.2 ms to 10 s per step: what it keeps, what is seen.

No time passes here: `tools/budget_table.py` turns the clock, and writes the table of docs/watch.md.
"""

from __future__ import annotations

import dataclasses
import functools

import pytest

from nethook.watching.budget import ALLOWANCE, LOOK, MOST, WHOLE
from tools.budget_table import PAGE, STEP_TIMES, Machine, Training, page, simulate

TOLERANCE = 0.005
"""Above the budget, or above what no budget can save, as a part of the training's time."""

CHEAP = Machine(quiet=15e-6, looking=100e-6)
"""Where steps that measure nothing cost little, the constants of the budget alone decide."""

simulated = functools.cache(simulate)


def bound(training, step):
    """What a step may cost: the budget, or what cannot be saved where that is more."""
    return max(training.share, training.least / step) + TOLERANCE


def show(outcome):
    training, costs = outcome.training, outcome.budget.costs
    steady = "-" if costs.steady_overhead is None else f"{costs.steady_overhead:.2%}"
    print(
        f"{1e3 * training.step:8g} ms x {training.steps:,}, then {training.change:g} times as long,"
        f" disk {training.disk:g} times as slow: steady {steady}, all {costs.overhead:.2%}, "
        f"opening {costs.opening:.2f} s, {outcome.coverage:.1%} measured, "
        f"gap {outcome.largest_gap}, {len(outcome.whole)} whole"
    )


@pytest.mark.parametrize("disk", [1.0, 20.0])
@pytest.mark.parametrize("change", [1.0, 0.2, 5.0])
@pytest.mark.parametrize("step", STEP_TIMES)
def test_the_budget_is_kept(step, change, disk):
    training = Training(step, 20_000, change, disk)
    outcome = simulated(training)
    show(outcome)
    costs = outcome.budget.costs
    assert outcome.halves[1] <= bound(training, step * change)
    if change == 1.0:
        # Where steps are short, the whole steps of the beginning are a part of it that shrinks.
        early = 0.0 if step > 1e-3 else 0.2 / costs.training
        assert costs.steady_overhead <= bound(training, step) + early
    assert outcome.largest_gap < 2 * MOST  # MOST, but where `every` changes in between


@pytest.mark.parametrize("disk", [1.0, 20.0])
@pytest.mark.parametrize("change", [1.0, 0.2, 5.0])
@pytest.mark.parametrize("steps", [100, 1_000, 20_000])
@pytest.mark.parametrize("step", STEP_TIMES)
def test_the_total_is_the_budget_and_an_allowance(step, steps, change, disk):
    """A tenth of a second, one more for whole steps, and what is measured before the first look."""
    training = Training(step, steps, change, disk)
    outcome = simulated(training)
    unavoidable = sum(
        steps / 2 * max(0.0, training.least - training.share * step * factor)
        for factor in (1.0, change)
    )
    lag = LOOK * training.everything
    assert outcome.excess <= ALLOWANCE + WHOLE + lag + 1.2 * unavoidable


@pytest.mark.parametrize("step", STEP_TIMES)
def test_the_first_steps_are_whole(step):
    outcome = simulated(Training(step, 1_000))
    # Where a step takes ten seconds, sixteen would cost several seconds above the budget.
    assert outcome.whole[:LOOK] == list(range(LOOK))
    if step <= 1.0:
        assert outcome.whole[:16] == list(range(16))
    assert outcome.budget.costs.opening >= ALLOWANCE
    assert outcome.budget.costs.opening <= 1.5 * ALLOWANCE + LOOK * outcome.training.everything


COVERED = {
    # step: the part of the steps in which each quantity is measured, of 1,000 and of 20,000
    0.2e-3: (0.10, 0.009), 0.5e-3: (0.10, 0.009), 1e-3: (0.10, 0.015), 2.6e-3: (0.12, 0.045),
    10e-3: (0.22, 0.22), 60e-3: (0.40, 0.40), 0.3: (0.45, 0.45), 1.0: (0.45, 0.45),
    10.0: (0.45, 0.45),
}  # fmt: skip


@pytest.mark.parametrize("step", STEP_TIMES)
def test_what_is_seen(step):
    """Coverage that a change of the constants may not lose."""
    for steps, least in zip((1_000, 20_000), COVERED[step], strict=True):
        outcome = simulated(Training(step, steps, machine=CHEAP))
        show(outcome)
        assert outcome.coverage >= least
        # Everything together at the start, and 24 times in each tenfold.
        assert len(outcome.whole) >= 60


@pytest.mark.parametrize("step", [2.6e-3, 10e-3, 60e-3])
def test_a_hundred_thousand_steps(step):
    outcome = simulated(Training(step, 100_000, machine=CHEAP))
    show(outcome)
    assert outcome.budget.costs.steady_overhead <= 0.0305
    assert outcome.excess <= ALLOWANCE + 0.05


@pytest.mark.parametrize("step", [2.6e-3, 60e-3, 1.0])
def test_without_a_budget_everything_is_measured(step):
    outcome = simulated(Training(step, 1_000, share=None))
    assert outcome.coverage == 1.0
    assert outcome.largest_gap == 1


def test_an_hour_of_short_steps_does_not_blind_the_next():
    outcome = simulated(Training(0.2e-3, 100_000, change=500.0))
    late = [step for step in outcome.measured[0] if step >= 75_000]
    assert len(late) >= 0.9 * 25_000  # a step of 0.1 s has room for all


def test_the_simulation_can_fail():
    """A machine on which nothing can be saved is above the budget."""
    dear = Training(10e-3, 1_000)
    dear = dataclasses.replace(dear, machine=dataclasses.replace(dear.machine, quiet=1e-3))
    assert simulated(dear).budget.costs.steady_overhead > 0.05


def test_the_table_of_the_page_is_up_to_date():
    assert page() == PAGE.read_text(encoding="utf-8"), "run: python -m tools.budget_table"
