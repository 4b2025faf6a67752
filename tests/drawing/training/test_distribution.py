"""How values are spread: every element is in exactly one cell."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nethook.drawing.rendering.render import figure
from nethook.drawing.training.distribution import (
    bands,
    bin_groups,
    histogram_over_time,
    merge_spans,
    units_over_time,
    values_of_layers,
)
from nethook.stats.fields import BINS, bin_values
from tests.runs.made import histogram

VALUES = bin_values()


@given(st.lists(st.integers(0, BINS - 1), max_size=30))
def test_rows_cover_every_count_once_and_in_order(places):
    total = np.bincount(np.array(places, dtype=int), minlength=BINS)
    groups = bin_groups(total, VALUES)
    assert sum(int(total[begin:end].sum()) for begin, end in groups) == len(places)
    assert all(begin < end for begin, end in groups)
    assert all(a[1] == b[0] for a, b in pairwise(groups))
    assert len(groups) <= 76


def counts_of(*arrays):
    return np.stack([histogram(array) for array in arrays])


def test_a_column_adds_up_to_one_and_says_where_the_values_are():
    random = np.random.default_rng(0)
    counts = counts_of(random.normal(size=5000), 10 * random.normal(size=5000))
    first, last = np.array([0, 10]), np.array([9, 19])
    made = figure(histogram_over_time("x", first, last, counts, VALUES))
    shares = np.array(made.data[0].customdata)[..., 0]
    np.testing.assert_allclose(np.nansum(shares, axis=0), [1, 1])
    ticks = dict(zip(made.layout.yaxis.ticktext, made.layout.yaxis.tickvals, strict=True))
    assert ticks["−10"] < ticks["−1"] < ticks["0"] < ticks["1"] < ticks["10"]
    # The row that is called 1 is where a one is.
    rows = len(made.data[0].y)
    above = [at for at, name in enumerate(made.data[0].y) if name[0].isdigit() and "(" not in name]
    nearest = min(above, key=lambda at: abs(np.log(float(made.data[0].y[at].replace(",", "")))))
    assert abs(nearest - ticks["1"]) <= 1
    assert rows < 80


def test_nothing_at_all_is_drawn_too():
    empty = np.zeros((2, BINS), dtype=int)
    figure(histogram_over_time("x", np.array([0, 1]), np.array([0, 1]), empty, VALUES))


@given(st.integers(1, 50), st.integers(1, 20))
def test_merged_spans_keep_all_counts_and_steps(spans, columns):
    first = np.arange(spans) * 2
    counts = np.random.default_rng(0).integers(0, 9, (spans, 4))
    begin, end, merged = merge_spans(first, first + 1, counts, columns)
    assert len(begin) == min(spans, columns)
    np.testing.assert_array_equal(merged.sum(axis=0), counts.sum(axis=0))
    assert (begin[0], end[-1]) == (0, 2 * spans - 1)
    np.testing.assert_array_equal(end[:-1] + 1, begin[1:])


def test_bands_lie_around_the_median():
    quantiles = np.array([[-2, -1, 0, 1, 2], [-4, -2, 0.5, 2, 4.0]])
    made = figure(
        bands("x", np.array([0, 10]), np.array([9, 19]), quantiles, (0.05, 0.25, 0.5, 0.75, 0.95))
    )
    assert [trace.name for trace in made.data] == [
        "5–95 %",
        "5–95 %",
        "25–75 %",
        "25–75 %",
        "median",
    ]
    np.testing.assert_array_equal(made.data[-1].y, [0, 0.5])
    np.testing.assert_array_equal(made.data[1].y, [2, 4])


def test_units_show_who_is_silent():
    active = np.ones((4, 300), dtype=bool)
    active[2:, :30] = False
    steps = np.arange(4)
    made = figure(units_over_time("x", steps, steps, active, np.ones(4, bool), rows=100))
    line, cells = made.data
    np.testing.assert_allclose(line.y, [0, 0, 0.1, 0.1])
    z = np.array(cells.z)
    assert z.shape == (100, 4)
    np.testing.assert_array_equal(z[:10, 2:], 0)
    np.testing.assert_array_equal(z[10:], 1)


def test_a_span_that_was_not_measured_is_a_gap_and_not_silent():
    measured = np.array([True, False, True])
    active = np.array([[True, True], [False, False], [True, False]])
    made = figure(units_over_time("x", np.arange(3), np.arange(3), active, measured))
    np.testing.assert_array_equal(made.data[0].y, [0, np.nan, 0.5])
    assert np.isnan(np.array(made.data[1].z)[:, 1]).all()


def test_layers_side_by_side():
    quantiles = np.array([[-1, -0.5, 0, 0.5, 1.0], [0, 0, 0, 1, 2.0]])
    made = figure(
        values_of_layers(
            "x", ["a", "b"], quantiles, (0.01, 0.25, 0.5, 0.75, 0.99), np.array([0, 0.5])
        )
    )
    np.testing.assert_array_equal(made.data[0].base, [-1, 0])
    np.testing.assert_array_equal(made.data[0].x, [2, 2])
    np.testing.assert_array_equal(made.data[-1].x, [0, 0])


def test_zeros_do_not_make_room_for_what_is_nearly_zero():
    random = np.random.default_rng(0)
    values = np.maximum(random.normal(size=20_000), 0)
    values[:3] = 1e-9
    groups = bin_groups(histogram(values), VALUES)
    names = [float(VALUES[end - 1]) for _, end in groups]
    assert sum(0 < name < 0.001 for name in names) <= 1


def test_bands_pass_spans_without_numbers():
    quantiles = np.array([[0.0, 1.0, 2.0], [np.nan] * 3, [1.0, 2.0, 3.0]])
    spec = bands("a", np.array([0, 10, 20]), np.array([9, 19, 29]), quantiles, (0.05, 0.5, 0.95))
    for trace in spec["data"]:
        assert list(trace["x"]) == [4.5, 24.5]
        assert np.isfinite(trace["y"]).all()
