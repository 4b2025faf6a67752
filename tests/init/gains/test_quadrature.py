"""Means over a normal variable, against closed forms."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from nethook.init.gains.quadrature import REACH, Floats, normal_means

NORMAL = NormalDist()


def rows(*functions: object) -> object:
    return lambda x: np.stack([function(x) for function in functions])  # type: ignore[operator]


def test_moments_of_the_normal_distribution() -> None:
    means = normal_means(rows(*(lambda x, n=n: x**n for n in range(9))))  # type: ignore[arg-type]
    expected = [1, 0, 1, 0, 3, 0, 15, 0, 105]
    np.testing.assert_allclose(means.values, expected, rtol=1e-13, atol=1e-12)
    assert (means.errors < 1e-10).all()


@pytest.mark.parametrize("t", [-2.0, 0.5, 3.0])
def test_the_characteristic_functions(t: float) -> None:
    means = normal_means(rows(lambda x: np.cos(t * x), lambda x: np.exp(t * x)))  # type: ignore[arg-type]
    expected = [math.exp(-(t**2) / 2), math.exp(t**2 / 2)]
    np.testing.assert_allclose(means.values, expected, rtol=1e-12)


@pytest.mark.parametrize("jump", [-1.7, 0.0, 0.1234567, 2 / 3, 3.0, 7.01])
def test_jumps_and_kinks_are_found(jump: float) -> None:
    step = lambda x: (x > jump) * 1.0  # noqa: E731
    hinge = lambda x: np.maximum(x - jump, 0.0)  # noqa: E731
    means = normal_means(rows(step, hinge))  # type: ignore[arg-type]
    above = NORMAL.cdf(-jump)
    expected = [above, NORMAL.pdf(jump) - jump * above]
    np.testing.assert_allclose(means.values, expected, rtol=1e-9, atol=1e-14)


def test_a_row_of_nan_does_not_hide_the_others() -> None:
    means = normal_means(rows(lambda x: x * np.nan, lambda x: x**2))  # type: ignore[arg-type]
    assert math.isnan(means.values[0])
    assert means.values[1] == pytest.approx(1.0, rel=1e-13)


def test_a_noisy_function_ends_and_says_how_little_is_known() -> None:
    chance = np.random.default_rng(0)
    calls = []

    def noise(x: Floats) -> Floats:
        calls.append(len(x))
        return chance.standard_normal((1, len(x)))

    means = normal_means(noise)
    assert means.errors[0] > 1e-4
    assert sum(calls) < 2_000_000


def test_points_stay_within_reach() -> None:
    seen = []

    def spy(x: Floats) -> Floats:
        seen.append(np.abs(x).max())
        return np.ones((1, len(x)))

    normal_means(spy)
    assert max(seen) <= REACH
