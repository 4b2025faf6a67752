"""Fewer points: nothing that sticks out is lost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nethook.drawing.data import Grid, Line
from nethook.drawing.decimate import bins_of, cut_line, robust_range, thin_grid, thin_line
from nethook.drawing.quantities import QUANTITIES

numbers = st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), min_size=1, max_size=200)


@given(numbers, st.integers(1, 60))
def test_a_line_keeps_its_extrema_and_its_last_point(values, points):
    step = np.arange(len(values)) * 3
    value = np.array(values)
    thin = thin_line(Line("x", step, value), points)
    assert len(thin.step) <= max(points, 1)
    assert thin.step[-1] == step[-1]
    if len(values) <= points:
        return
    # By hand: the bins are equal parts of the axis.
    width = step[-1] / points
    groups = np.minimum((step / width).astype(int), points - 1)
    for at, group in enumerate(np.unique(groups)):
        part = value[groups == group]
        part = part[~np.isnan(part)]
        if part.size:
            assert (thin.least[at], thin.greatest[at]) == (part.min(), part.max())
            assert np.isclose(thin.value[at], part.mean())
        else:
            assert np.isnan(thin.value[at])


@given(st.integers(1, 5), st.integers(1, 120), st.integers(1, 40), st.integers(0, 2**31))
def test_a_grid_keeps_least_greatest_and_last_of_every_column(rows, columns, most, seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, columns))
    values[random.random(values.shape) < 0.3] = np.nan
    ends = np.cumsum(random.integers(1, 9, columns))
    first = np.append(0, ends[:-1])
    grid = Grid(QUANTITIES["mean"], ["r"] * rows, first, ends - 1, values, values, values)
    thin = thin_grid(grid, most)
    assert thin.greatest.shape[1] <= max(most, 1) or columns <= most
    assert (thin.first_step[0], thin.last_step[-1]) == (0, ends[-1] - 1)
    for at, (begin, end) in enumerate(zip(thin.first_step, thin.last_step, strict=True)):
        inside = (first >= begin) & (ends - 1 <= end)
        for row in range(rows):
            part = values[row, inside]
            part = part[~np.isnan(part)]
            found = [thin.least[row, at], thin.greatest[row, at], thin.last[row, at]]
            wanted = [part.min(), part.max(), part[-1]] if part.size else [np.nan] * 3
            np.testing.assert_array_equal(found, wanted)


def test_columns_are_about_equally_wide_in_steps():
    last = np.array([*range(1000), *range(1999, 100_000, 1000)])
    groups = bins_of(last, last, 100)
    assert len(np.unique(groups)) == 100
    assert (groups[:1000] == 0).all()


def test_one_wild_value_does_not_stretch_the_range():
    values = np.append(np.linspace(1, 2, 1000), 1e9)
    assert robust_range(values)[1] < 2.1
    assert robust_range(np.array([3.0, 3.0, 3.0])) == (2.5, 3.5)
    assert robust_range(np.array([0.0] * 99 + [5.0])) == (0.0, 5.0)
    assert robust_range(np.array([np.nan])) == (0.0, 1.0)


def test_a_part_of_a_line_has_one_point_beyond_each_end() -> None:
    step = np.arange(0, 100, 10)
    line = Line("a", step, step / 10.0, step - 1.0, step + 1.0)
    part = cut_line(line, 25, 50)
    assert part.step.tolist() == [20, 30, 40, 50, 60]
    assert part.value.tolist() == [2, 3, 4, 5, 6]
    assert part.least is not None
    assert part.least.tolist() == [19, 29, 39, 49, 59]
    assert cut_line(line, -5, 1000).step.tolist() == step.tolist()
    assert cut_line(Line("b", step, step * 1.0), 25, 50).greatest is None
