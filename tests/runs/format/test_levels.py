"""Overview levels: least, greatest and last over 8, 64 and 512 windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.runs.format.levels import (
    SHOWN,
    Group,
    _rounded,
    shown_numbers,
    single,
    tail,
    unpack_courses,
)
from nethook.runs.format.schema import LEVELS
from nethook.stats.fields import INDEX, empty_rows
from tests.runs.made import row, values


def test_what_is_shown_is_what_numpy_computes() -> None:
    data = values(1, 1)
    (shown,) = shown_numbers(row(data)[None])
    want = {
        "mean": data.mean(),
        "std": data.std(),
        "rms": np.sqrt((data**2).mean()),
        "min": data.min(),
        "max": data.max(),
        "zeros": (data == 0).mean(),
        "nonfinite": 0.0,
    }
    for name, number in want.items():
        assert shown[SHOWN.index(name)] == pytest.approx(number)
    assert np.isnan(shown[SHOWN.index("near")])  # no bounds, no share near them


def test_a_series_without_finite_elements_shows_its_share_only() -> None:
    rows = empty_rows(1)
    rows[0, INDEX["count"]] = rows[0, INDEX["nan"]] = 10
    (shown,) = shown_numbers(rows)
    assert np.isnan(shown[:5]).all()
    assert shown[SHOWN.index("nonfinite")] == 1


def test_a_group_keeps_least_greatest_and_last() -> None:
    group = Group()
    rows = [np.stack([row(values(at, step)) for at in range(3)]) for step in range(8)]
    rows[7][1] = empty_rows(1)[0]  # not measured in the last window
    for each in rows:
        assert not group.full
        group.add(single(each))
    assert group.full
    ((block, data),) = group.pack()
    ((_, series, courses),) = unpack_courses([data], block, 3)
    course = courses[0]
    assert series.tolist() == [0, 1, 2]
    std = np.stack([shown_numbers(each)[:, SHOWN.index("std")] for each in rows])  # (8, 3)
    least, greatest, last = course[:, :, SHOWN.index("std")].T
    assert least == pytest.approx(np.nanmin(std, axis=0), rel=1e-3)
    assert greatest == pytest.approx(np.nanmax(std, axis=0), rel=1e-3)
    assert (least <= np.nanmin(std, axis=0)).all()
    assert (greatest >= np.nanmax(std, axis=0)).all()
    assert last == pytest.approx([std[7, 0], std[6, 1], std[7, 2]], rel=1e-3)


def test_series_that_come_later_join_the_group() -> None:
    group = Group()
    group.add(single(np.stack([row(values(0, 0))])))
    group.add(single(np.stack([row(values(at, 1)) for at in range(3)])))
    assert len(group.course) == 3


@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_rounding_goes_outwards(value: float) -> None:
    array = np.array([[value]])
    assert _rounded(array, down=True)[0, 0] <= value or value < -3e38
    assert _rounded(array, down=False)[0, 0] >= value or value > 3e38
    if 1e-30 < abs(value) < 1e30:
        for down in (True, False, None):
            assert _rounded(array, down=down)[0, 0] == pytest.approx(value, rel=2**-11)


def test_rounding_keeps_what_is_no_number() -> None:
    odd = np.array([[np.inf, -np.inf, np.nan]])
    for down in (True, False, None):
        assert np.array_equal(_rounded(odd, down=down), odd, equal_nan=True)


@given(st.integers(0, 10_000), st.integers(0, 3))
def test_a_plan_reads_every_window_once(windows: int, level: int) -> None:
    covered: list[int] = []
    for at, first, end in tail(windows, level):
        width = LEVELS[at - 1] if at else 1
        covered += range(first * width, end * width)
        assert at == level or end - first < 8
    assert covered == list(range(windows))
