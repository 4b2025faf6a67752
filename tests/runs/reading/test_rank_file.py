"""A part of a run is what the whole has there."""

from __future__ import annotations

import numpy as np
import pytest

import nethook
from tests.figures.shared import training


@pytest.mark.parametrize(
    "between", [(0, 0), (17, 40), (100, 10_000), (-5, 3), (0, 119), (500, 600)]
)
def test_windows_that_have_steps_in_between(between: tuple[int, int]) -> None:
    run = nethook.open_run(training())
    keys = [("conv1", "outputs"), ("fc2.bias", "updates"), ("@loop", "grad_norm")]
    for whole, part in zip(run.many(keys), run.many(keys, between=between), strict=True):
        there = (whole.last_step >= between[0]) & (whole.first_step <= between[1])
        np.testing.assert_array_equal(part.first_step, whole.first_step[there])
        np.testing.assert_array_equal(part.seen, whole.seen[there])
        np.testing.assert_array_equal(part.rows, whole.rows[there])


def test_of_evaluation_too() -> None:
    run = nethook.open_run(training())
    key = [next((i.address, i.quantity) for i in run.catalogue if i.quantity == "loss")]
    assert run.many(key, "eval", between=(40, 60))[0].last_step.tolist() == [50]
