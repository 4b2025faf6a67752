"""Intervals of means, against tables and against scipy's definition by simulation-free numbers."""

import math

import pytest
import torch

from nethook.interp.results.statistics import interval_over_rows, mean_over_rows, t_quantile

# Two-sided 95 % and 99 %, from any table of Student's t.
TABLE = {1: (12.706, 63.657), 2: (4.303, 9.925), 3: (3.182, 5.841), 4: (2.776, 4.604),
         5: (2.571, 4.032), 10: (2.228, 3.169), 29: (2.045, 2.756), 30: (2.042, 2.750)}  # fmt: skip


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_are_those_of_the_tables(freedom):
    for confidence, expected in zip((0.95, 0.99), TABLE[freedom], strict=True):
        assert t_quantile(freedom, confidence) == pytest.approx(expected, abs=6e-4)


def test_many_rows_approach_the_normal_distribution():
    assert t_quantile(100_001, 0.95) == pytest.approx(1.95996, abs=1e-4)


def test_an_interval_by_hand():
    low, high = interval_over_rows(torch.tensor([[1.0, 2.0, 3.0, 6.0]]), 0.95)
    half = 3.1824463 * math.sqrt(14 / 3) / 2  # mean 3, squares 4 + 1 + 0 + 9
    torch.testing.assert_close(low, torch.tensor([3 - half], dtype=torch.double))
    torch.testing.assert_close(high, torch.tensor([3 + half], dtype=torch.double))


def test_rows_that_are_missing_do_not_count():
    values = torch.tensor([[1.0, math.nan, 3.0], [math.nan, 2.0, math.nan], [math.nan] * 3])
    assert mean_over_rows(values)[:2].tolist() == [2.0, 2.0]
    assert mean_over_rows(values)[2].isnan()
    low, high = interval_over_rows(values, 0.95)
    alone = interval_over_rows(torch.tensor([1.0, 3.0]), 0.95)
    assert (low[0], high[0]) == alone
    assert low[1].isnan()
    assert high[2].isnan()
