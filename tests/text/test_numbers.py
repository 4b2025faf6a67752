"""Numbers as people read them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.text.numbers import (
    ascii_number,
    count,
    log_ticks,
    number,
    power_ticks,
    seconds,
    share,
    size,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"), (1, "1"), (0.0123456, "0.0123"), (1234567, "1.23e6"), (123456, "123,456"),
        (-2.5, "−2.5"), (4.5e-7, "4.5e−7"), (math.nan, "NaN"), (-math.inf, "−∞"), (999.9, "1,000"),
        (0.001, "0.001"), (1e6, "1e6"),
    ],
)  # fmt: skip
def test_number(value, shown):
    assert number(value) == shown


@given(st.floats(-1e300, 1e300))
def test_a_number_is_within_its_digits(value):
    read = float(number(value, 4).replace("−", "-").replace(",", ""))
    assert read == pytest.approx(value, rel=6e-4, abs=1e-320)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (0.0123456, "0.0123"), (3e-5, "3e-05"), (-2.5, "-2.5"), (12345.6, "1.23e+04"),
        (12345, "12,345"), (math.nan, "nan"), (-math.inf, "-inf"),
        (np.float32(0.1), "0.1"), (np.int64(1000), "1,000"),
    ],
)  # fmt: skip
def test_a_number_for_a_message(value, shown):
    assert ascii_number(value) == shown


@given(st.floats(allow_nan=False), st.integers(1, 9))
def test_a_number_of_a_message_can_be_copied_into_a_program(value, digits):
    assert ascii_number(value, digits).isascii()
    assert float(ascii_number(value, digits)) == float(f"{value:.{digits}g}")


@pytest.mark.parametrize("value", [True, None, "much", [1, 2]])
def test_what_is_not_a_number_is_shown_as_it_is(value):
    assert ascii_number(value) == str(value)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (12345, "12,345 calls")],
)
def test_counts_have_a_plural(number, shown):
    assert count(number, "call") == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 KB"),
        (1234, "1.23 KB"),
        (99_940, "99.9 KB"),
        (123_456, "123 KB"),
        (999_499, "999 KB"),
        (999_500, "1 MB"),  # and not 1,000 KB
        (5_000_000, "5 MB"),
        (2_500_000_000, "2.5 GB"),
        (4_000_000_000_000, "4,000 GB"),
    ],
)
def test_sizes_are_in_the_unit_that_a_person_would_choose(number, shown):
    assert size(number) == shown


@given(st.integers(0, 10**15))
def test_a_size_is_near_the_number(number):
    value, unit = size(number).replace(",", "").split()
    exact = float(value) * 1000 ** ["B", "KB", "MB", "GB"].index(unit)
    assert exact == pytest.approx(number, rel=0.006)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 %"), (0.5, "50 %"), (0.8333, "83.3 %"), (0.00001, "< 0.01 %"), (0.021, "2.1 %")],
)
def test_share(value, shown):
    assert share(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.4, "1.4 s"), (60, "1 min"), (125, "2 min 5 s"), (7260, "2 h 1 min"), (200_000, "2 d 7 h")],
)
def test_seconds(value, shown):
    assert seconds(value) == shown


@given(st.floats(1e-12, 1e12), st.floats(1.0, 1e8))
def test_ticks_of_a_logarithmic_axis_are_on_it_and_say_their_value(low, factor):
    places, texts = log_ticks(low, low * factor)
    assert 1 <= len(places) <= 12
    assert all(low * 0.99 <= place <= low * factor * 1.01 for place in places)
    assert texts == [number(place) for place in places]


def test_ticks_are_round():
    assert log_ticks(0.0021, 0.004)[1] == ["0.0025", "0.003", "0.0035", "0.004"]
    assert log_ticks(1, 60)[1] == ["1", "2", "5", "10", "20", "50"]
    assert log_ticks(1e-6, 1)[1][-1] == "1"
    assert power_ticks(-2.5, 0.2) == ([-3, -2, -1, 0, 1], ["0.001", "0.01", "0.1", "1", "10"])
