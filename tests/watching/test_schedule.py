"""What is due in which step, and until when nothing is."""

from __future__ import annotations

import pytest

from nethook.hooks.compile.graph import shown
from nethook.watching import budget, schedule
from nethook.watching.schedule import Schedule


class Rest:
    awake = True

    def rest(self):
        self.awake = False

    def wake(self):
        self.awake = True


def thin(monkeypatch, **options) -> Schedule:
    """A budget that is overdrawn from the start."""
    monkeypatch.setattr(budget, "ALLOWANCE", -1e3)
    monkeypatch.setattr(budget, "WHOLE", -1e3)
    monkeypatch.setattr(schedule, "LONGEST", 1e3)
    return Schedule(0.001, **options)


def test_without_a_budget_everything_is_due_in_every_step():
    of = Schedule(None)
    for step in range(50):
        assert all((of.outputs, of.grads, of.param_grads, of.params, of.looks, of.measures))
        assert of.until == 0  # each step ends by itself
        assert not of.step_ended(step, 0.0)
    shown.leave(of)


def test_what_is_not_wanted_is_never_due():
    of = Schedule(None, ("outputs",))
    assert (of.outputs, of.grads, of.param_grads, of.params) == (True, False, False, False)
    assert Schedule(None, ("updates",)).params  # which are measured together with the weights
    shown.leave(of)


def test_samples_are_taken_at_first_and_then_16_times_in_each_doubling():
    of, sampled = Schedule(None, first_step=1000), []
    for done in range(130):
        if of.samples:
            sampled.append(done)
        of.step_ended(1000 + done, 0.0)
    assert sampled == [*range(16), *range(16, 32), *range(32, 64, 2), *range(64, 130, 4)]
    shown.leave(of)


def test_where_nothing_is_due_nothing_is_decided_until_something_is(monkeypatch):
    """Steps that are put off and steps that are ended one by one: the same are due."""
    courses = []
    for one_by_one in (True, False):
        of = thin(monkeypatch)
        monkeypatch.setattr(of.budget, "_look", lambda: False)
        of.budget.every = 64
        due, put_off = [], 0
        for step in range(600):
            due.append((step, of.outputs, of.grads, of.params, of.looks, of.samples))
            if not one_by_one and step + 1 < of.until:
                put_off += 1
                continue
            of.step_ended(step, 0.0)
        courses.append(due)
        shown.leave(of)
    assert put_off > 200
    assert courses[0] == courses[1]


def test_a_step_is_not_put_off_for_longer_than_a_second(monkeypatch):
    of = thin(monkeypatch)
    monkeypatch.setattr(schedule, "LONGEST", 1.0)
    monkeypatch.setattr(type(of.budget), "seconds_a_step", property(lambda self: 0.4))
    monkeypatch.setattr(of.budget, "_look", lambda: False)
    of.budget.every = 512
    longest = 0
    for step in range(300):
        of.step_ended(step, 0.0)
        longest = max(longest, of.until - step - 1)
    assert longest == 2
    shown.leave(of)


def test_hooks_rest_where_they_have_nothing_to_do(monkeypatch):
    of = thin(monkeypatch)
    of.resting = Rest()
    monkeypatch.setattr(of.budget, "_look", lambda: False)
    of.budget.every = 512
    for step in range(40):
        of.step_ended(step, 0.0)
    assert not of.resting.awake
    of.wake()
    assert of.resting.awake
    of.rest_or_wake()
    assert not of.resting.awake
    of.keep_awake("a reason")
    of.keep_awake("another")
    of.keep_awake("another", False)
    of.step_ended(40, 0.0)
    assert of.resting.awake
    of.keep_awake("a reason", False)
    of.step_ended(41, 0.0)
    assert not of.resting.awake
    shown.leave(of)


def test_at_the_end_no_step_waits(monkeypatch):
    of = thin(monkeypatch)
    of.until = 100
    of.finish()
    assert of.until == 0
    shown.leave(of)


@pytest.mark.parametrize("share", [None, 0.03])
def test_what_compiled_graphs_hide_is_told_step_by_step(share, monkeypatch):
    of = thin(monkeypatch)
    of.hidden.known = True
    monkeypatch.setattr(of.budget, "_look", lambda: False)
    of.budget.every = 512
    for step in range(60):
        of.step_ended(step, 0.0)
        assert of.until == 0
    shown.leave(of)
