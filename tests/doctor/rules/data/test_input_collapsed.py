"""The rule `input-collapsed`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import inputs, stuck, well
from tests.doctor.synthetic import Made


def spread(value: float, samples: int = 32) -> Made:
    return stuck().batch("input_spread", value).batch("size", samples)


def test_samples_that_do_not_differ() -> None:
    (finding,) = spread(9e-4).found("input-collapsed")
    assert "nearly constant (spread between samples 0.0009)" in finding.message
    assert not spread(1.1e-3).found("input-collapsed")
    assert not spread(9e-4, samples=1).found("input-collapsed")


def test_one_value_only() -> None:
    assert stuck().batch("input_distinct", 1).found("input-collapsed")
    assert not stuck().batch("input_distinct", 2).found("input-collapsed")


def test_inputs_within_a_hundredth_of_zero() -> None:
    (finding,) = inputs(stuck(), 0.008, 0.004).found("input-collapsed")
    assert "is next to nothing" in finding.message
    assert not inputs(stuck(), 0.010, 0.004).found("input-collapsed")


def fed(made: Made, size: float, shape: list[int]) -> Made:
    made = inputs(made, 0.0, 1.0)
    for record in made.losses:
        record.data["target"] = {"shape": [32, 16, 4]}
    return made.series("", "inputs:1", rms=size, info={"shape": shape})


def test_a_decoder_that_is_fed_zeros() -> None:
    (finding,) = fed(stuck(), 0.0, [32, 16, 4]).found("input-collapsed")
    assert finding.severity == "warning"
    assert "input 2 of the network has the shape of the targets, (32, 16, 4)" in finding.message


def test_other_inputs_may_be_zero() -> None:
    assert not fed(stuck(), 0.1, [32, 16, 4]).found("input-collapsed")
    assert not fed(stuck(), 0.0, [1, 32, 64]).found("input-collapsed")  # a first hidden state
    assert not fed(well(), 0.0, [32, 16, 4]).found("input-collapsed")
