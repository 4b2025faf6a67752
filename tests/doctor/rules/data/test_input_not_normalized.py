"""The rule `input-not-normalized`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill import CLASSES, bad, inputs, stuck, well
from tests.doctor.synthetic import Made, falling


def test_inputs_that_are_too_large() -> None:
    (finding,) = inputs(stuck(), 0.0, 10.1).found("input-not-normalized")
    assert "mean 0 and spread 10.1, and the loss does not fall well" in finding.message
    assert not inputs(stuck(), 0.0, 9.9).found("input-not-normalized")


def test_inputs_far_from_zero() -> None:
    assert inputs(stuck(), 4.0, 0.7).found("input-not-normalized")
    assert not inputs(stuck(), 4.0, 0.9).found("input-not-normalized")  # within 5 spreads
    assert not inputs(stuck(), 2.5, 0.4).found("input-not-normalized")  # small


def test_a_norm_that_comes_first() -> None:
    made = stuck().module("bn", activation="norm")
    made.series("", "inputs", mean=100.0, std=50.0, rms=112.0, info={"dtype": "float32"})
    assert not made.found("input-not-normalized")


def test_the_first_loss_tells_of_it() -> None:
    made = inputs(well(), 0.0, 20.0)
    made.losses.clear()
    made.record(**CLASSES, prediction={"shape": [16, 10]}, value=3.1 * np.log(10))
    (finding,) = made.found("input-not-normalized")
    assert "the first loss is 7.14, where 2.3 would be usual" in finding.message


def joined(at: int, times: float, loss: float) -> Made:
    """Inputs of another size join in, and the loss goes somewhere else."""
    made = bad(np.r_[np.geomspace(2.3, 0.05, at), np.full(200 - at, loss)])
    made.module("fc", activation="linear", parameters=["fc.weight"])
    size = np.r_[np.ones(at), np.full(200 - at, times)]
    return made.series("", "inputs", mean=0.0, std=size, rms=size, info={"dtype": "float32"})


def test_inputs_that_get_larger_in_the_middle_of_the_run() -> None:
    (finding,) = joined(120, 200.0, 6.0).found("input-not-normalized")
    assert finding.first_step == 120
    assert "since about step 120 inputs are 200 times as large" in finding.message
    assert not joined(120, 200.0, 0.05).found("input-not-normalized")  # it does no harm
    assert not joined(120, 4.0, 6.0).found("input-not-normalized")  # it is not they


def test_small_inputs_whose_offset_drowns_their_spread() -> None:
    (finding,) = inputs(stuck(), -2.0, 0.0065).found("input-not-normalized")
    assert "mean -2 and spread 0.0065" in finding.message
    assert "two divisions" in finding.fix
    assert not inputs(well(), -2.0, 0.0065).found("input-not-normalized")  # it does no harm
    assert not inputs(stuck(), -2.0, 0.05).found("input-not-normalized")


def test_huge_inputs_of_a_run_that_does_its_job_in_part() -> None:
    made = inputs(bad(falling(200, end=1.4)), 500.0, 290.0)
    (finding,) = made.found("input-not-normalized")
    assert "one answer for all inputs would score" in finding.message
    assert not inputs(bad(falling(200, end=1.4)), 30.0, 20.0).found("input-not-normalized")
    assert not inputs(bad(falling(200, end=0.4)), 500.0, 290.0).found("input-not-normalized")
