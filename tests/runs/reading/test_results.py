"""What a run gives back, against numpy on the numbers themselves."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.errors import NoSuchSiteError, OptionError
from nethook.runs.format.levels import SHOWN
from nethook.runs.reading.results import Histograms, Overview, Scalar, Series, Units
from nethook.stats.fields import FIELDS, empty_rows
from tests.runs.made import histogram, row, values


def series(*arrays, seen=None):
    """A series with a window of two steps for each array; None: nothing was measured."""
    rows = empty_rows(len(arrays))
    for index, array in enumerate(arrays):
        if array is not None:
            rows[index] = row(array)
    first = np.arange(len(arrays)) * 2
    seen = [0 if array is None else 2 for array in arrays] if seen is None else seen
    steps = np.full(len(arrays), 2)
    closed = np.ones(len(arrays), bool)
    return Series(
        "conv1", "outputs", "train", first, first + 1, steps, np.array(seen), closed, rows
    )


DATA = [values(0, step) for step in range(3)]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("mean", np.mean),
        ("std", np.std),
        ("min", np.min),
        ("max", np.max),
        ("rms", lambda array: np.sqrt((array**2).mean())),
        ("zero_share", lambda array: (array == 0).mean()),
        ("nonfinite_share", lambda array: 0.0),
        ("count", np.size),
    ],
)
def test_columns_are_what_numpy_says(name, number):
    np.testing.assert_allclose(series(*DATA)[name], [number(array) for array in DATA], rtol=1e-12)


def test_where_nothing_was_measured_there_is_no_number():
    made = series(DATA[0], None)
    for name in ("mean", "std", "rms", "min", "max", "zero_share", "near_share"):
        assert np.isnan(made[name][1])
    assert made["count"].tolist() == [12, 0]
    assert made.coverage.tolist() == [1, 0]


def test_the_whole_run_is_one_summary():
    total = series(*DATA).total()
    everything = np.concatenate(DATA)
    assert list(total) == list(FIELDS)
    np.testing.assert_allclose(total["mean"] + total["mean_low"], everything.mean(), rtol=1e-12)
    np.testing.assert_allclose(total["m2"], everything.var() * everything.size, rtol=1e-12)
    assert total["max"] == everything.max()


def test_a_column_that_there_is_not():
    with pytest.raises(NoSuchSiteError, match=r"no column 'median'; it has tensors, .*near_share"):
        series(DATA[0])["median"]
    with pytest.raises(NoSuchSiteError, match="an overview has no 'median'; it has mean, std"):
        Overview("train", (), np.zeros(0), np.zeros(0), np.zeros((0, 0, 3, 8))).last("median")


def test_all_columns_have_the_length_of_the_series():
    columns = series(*DATA).columns()
    assert {len(column) for column in columns.values()} == {3}
    assert "mean_low" not in columns
    assert set(FIELDS) - {"mean_low"} <= set(columns)


def test_series_say_what_they_are():
    assert repr(series()) == "<Series 'conv1' outputs, train: no windows>"
    shown = repr(series(DATA[0], DATA[1], seen=[2, 1]))
    assert shown.startswith("<Series 'conv1' outputs, train: 2 windows, steps 0 to 3, 75% measured")


def test_quantiles_are_within_nine_percent_of_numpys():
    data = np.random.default_rng(0).lognormal(size=(2, 500))
    counts = np.stack([histogram(array) for array in data] + [0 * histogram(data[0])])
    steps = np.arange(3)
    made = Histograms("conv1", "outputs", "train", steps, steps, counts)
    wanted = (0.0, 0.05, 0.5, 0.95, 1.0)
    for mine, array in zip(made.quantiles(wanted), data, strict=False):
        exact = np.quantile(array, wanted, method="inverted_cdf")
        np.testing.assert_allclose(mine, exact, rtol=0.09)
    assert np.isnan(made.quantiles(0.5)[2]).all()
    assert made.quantiles(0.5).shape == (3, 1)
    assert repr(made) == "<Histograms 'conv1' outputs, train: 3 spans, 1,000 elements>"


@pytest.mark.parametrize("q", [(), 1.1, (0.5, -0.1), np.nan])
def test_quantiles_that_there_are_not(q):
    made = Histograms("a", "outputs", "train", np.arange(1), np.arange(1), np.ones((1, 645), int))
    with pytest.raises(OptionError, match="`q` must be one or more numbers between 0 and 1; got"):
        made.quantiles(q)


def test_dead_units_of_spans_that_were_measured():
    active = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], bool)
    steps = np.arange(3)
    units = Units("fc", "outputs", "train", steps, steps, active, np.array([True, True, False]))
    np.testing.assert_array_equal(units.dead_share, [0.5, 0.0, np.nan])
    assert repr(units) == "<Units 'fc' outputs, train: 3 spans, 4 units>"
    none = Units("fc", "outputs", "train", steps, steps, active[:, :0], np.ones(3, bool))
    assert none.dead_share.size == 0


def test_an_overview_has_least_greatest_and_last():
    course = np.arange(2 * 1 * 3 * len(SHOWN), dtype=float).reshape(2, 1, 3, len(SHOWN))
    overview = Overview("train", (("a", "outputs"),), np.arange(2), np.arange(2), course)
    index = SHOWN.index("rms")
    for which, column in enumerate((overview.least, overview.greatest, overview.last)):
        np.testing.assert_array_equal(column("rms"), course[:, :, which, index])
    assert repr(overview) == "<Overview train: 2 points of 1 series>"


def test_a_scalar_says_its_last_value():
    scalar = Scalar("loss", np.array([3, 1000]), np.zeros(2), np.array([1.0, 0.25]))
    assert repr(scalar) == "<Scalar 'loss': 2 points, last 0.25 at step 1,000>"
    assert (
        repr(Scalar("loss", np.zeros(0), np.zeros(0), np.zeros(0))) == "<Scalar 'loss': 0 points>"
    )
