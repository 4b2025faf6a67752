"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.text.numbers import log_ticks, number, power_ticks, seconds, share


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
