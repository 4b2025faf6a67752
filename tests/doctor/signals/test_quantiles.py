"""Medians and other quantiles; the oracle is numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nethook.doctor.signals.quantiles import median, quantile, running_medians


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 10, 101, 4096])
def test_a_median_is_numpys_to_the_last_bit(count: int) -> None:
    values = np.random.default_rng(count).standard_normal(count) * 1e3
    before = values.copy()
    assert median(values) == float(np.median(values))
    assert median(values.tolist()) == float(np.median(values))
    assert median(values.astype(np.int64)) == float(np.median(values.astype(np.int64)))
    assert np.array_equal(values, before)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.25, 0.5, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 101, 4096])
def test_a_quantile_is_numpys_to_the_last_bit(count: int, share: float) -> None:
    values = np.random.default_rng(count).standard_normal(count) * 1e3
    assert quantile(values, share) == float(np.quantile(values, share))
    assert math.isnan(quantile([*values, math.nan], share))


def test_infinity_is_a_number_and_nan_is_none() -> None:
    assert median([1.0, math.inf, math.inf]) == math.inf
    assert median([-math.inf, 2.0, 3.0]) == 2.0
    assert math.isnan(median([1.0, math.nan, 3.0]))
    assert math.isnan(median([]))
    assert all(math.copysign(1, median([-0.0] * count)) == 1 for count in range(1, 5))
    assert math.isnan(quantile([], 0.5))
    assert math.isnan(quantile([1.0, 2.0, math.inf], 0.75))
    assert quantile([1.0, 2.0, 3.0, math.inf], 0.5) == 2.5


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 40])
def test_running_medians_are_those_of_every_window(width: int) -> None:
    values = np.random.default_rng(width).standard_normal(40)
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    assert np.array_equal(running_medians(values, width), np.median(windows, axis=1))
