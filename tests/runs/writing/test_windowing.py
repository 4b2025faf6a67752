"""Which step belongs to which window."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.runs.writing.windowing import EARLY, WindowClock, window_end


def windows(steps: int) -> list[tuple[int, int]]:
    """First step and length of each window of a run, as a training loop would find them."""
    clock, found = WindowClock(), []
    for step in range(steps):
        if clock.ends_with(step):
            found.append((clock.first, step + 1 - clock.first))
            clock.open(step + 1)
    return found


def test_the_first_two_thousand_windows_have_one_step() -> None:
    found = windows(2500)
    assert found[:2000] == [(step, 1) for step in range(2000)]
    assert found[2000:2003] == [(2000, 2), (2002, 2), (2004, 2)]


def test_a_million_steps_have_8488_windows() -> None:
    first, count = 0, 0
    while first < 10**6:
        first, count = window_end(first), count + 1
    assert count == 8488  # 1,000 × (1 + the 999th harmonic number), and a few for rounding


@given(st.integers(0, 10**9))
def test_a_window_is_a_thousandth_of_the_steps_before_it(first: int) -> None:
    assert window_end(first) - first == max(1, first // 1000)


def test_every_step_is_in_exactly_one_window() -> None:
    covered = [step for first, length in windows(5000) for step in range(first, first + length)]
    assert covered == list(range(len(covered)))


def test_a_clock_that_starts_later_has_the_windows_of_that_time() -> None:
    clock = WindowClock(5000)
    assert [clock.ends_with(step) for step in range(5000, 5005)] == [False] * 4 + [True]


def test_a_step_that_was_skipped_still_ends_the_window() -> None:
    clock = WindowClock(5000)
    assert clock.ends_with(9999)


def test_events_close_windows_early_but_not_for_ever() -> None:
    clock = WindowClock()
    assert all(clock.close_early() for _ in range(EARLY))
    assert not clock.close_early()


@pytest.mark.parametrize("steps", [10**3, 10**4, 10**5])
def test_the_number_of_windows_grows_with_the_logarithm(steps: int) -> None:
    first, count = 0, 0
    while first < steps:
        first, count = window_end(first), count + 1
    assert count <= 1000 * (2 + math.log(steps / 1000))
