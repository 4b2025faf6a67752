"""The time of examinations is counted apart, and limited."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from nethook.examining.limits import CLOCK, LEAST, MOST
from nethook.watching.costs import OTHER
from nethook.watching.examinations.time_left import COPIED, TimeLeft
from tests.watching.fakes import journal, schedule


def made(elapsed: float = 0.0):
    left_out: list[float] = []
    budget = SimpleNamespace(elapsed=elapsed, leave_out=left_out.append)
    of = journal(schedule=schedule(budget=budget))
    return TimeLeft(of), of.schedule, left_out


def test_its_seconds_are_neither_trainings_nor_watchings():
    left, plan, left_out = made()
    with pytest.raises(ValueError, match="of the block"), left.timed():
        time.sleep(0.01)
        raise ValueError("of the block")
    left.took(2.0)
    assert left.seconds >= 2.01
    assert left_out == [left.seconds - 2.0, 2.0]
    assert plan.spent[OTHER] == 2.0 - left.seconds  # what was only told is not the hook's


def test_what_is_left_is_of_the_work_and_grows_with_the_run():
    left, *_ = made()
    assert left.left() == LEAST
    with left.timed():
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
    assert LEAST - 0.2 < left.left() <= LEAST - 0.02
    assert made(elapsed=1e6)[0].left() == MOST


def test_loading_is_no_part_of_the_limit():
    left, *_ = made()
    with left.timed():
        left.load()
    assert left.left() > LEAST - 0.1
    left.load()  # once is enough


def test_why_a_pass_is_too_slow():
    left, *_ = made()
    assert left.why_too_slow(0, LEAST / 4) == ""
    assert left.why_too_slow(2 * COPIED, 0.0).startswith("one pass takes about 2.0 s")
    assert left.why_too_slow(0, 2.0) == "one pass takes about 4.0 s, and 1.0 s may be used"


def test_the_clock_ends_it_as_well():
    left, *_ = made(elapsed=1e6)
    left.took(CLOCK - 0.5)
    assert left.deadline().left() <= 0.5
    left.took(1.0)
    assert left.deadline().left() <= 0
