"""The rule `input-ignored`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import layers, stuck, well
from tests.doctor.synthetic import Made


def spreads(output: float, given: float = 0.7, samples: int = 32) -> Made:
    made = stuck().batch("output_spread", output).batch("input_spread", given)
    return made.batch("size", samples)


def test_outputs_that_do_not_differ() -> None:
    (finding,) = spreads(1e-5).found("input-ignored")
    assert "different inputs (spread 0.7) give one and the same output" in finding.message
    assert not spreads(1.1e-5).found("input-ignored")


def test_inputs_that_do_not_differ_either() -> None:
    assert spreads(0.0, 0.01).found("input-ignored")
    assert not spreads(0.0, 0.009).found("input-ignored")


def test_dead_layers_explain_it() -> None:
    made = spreads(0.0).module("act", activation="rectifier")
    assert not made.series("act", "outputs", zero_share=1.0).found("input-ignored")


def test_what_an_experiment_on_a_copy_shows() -> None:
    (finding,) = stuck().examined("the input matters", inputs=1).found("input-ignored")
    assert not well().examined("the input matters", inputs=1).found("input-ignored")
    assert "on a copy of the model" in finding.message
    assert finding.severity == "error"
    assert not stuck(3).examined("the input matters", "fine").found("input-ignored")
    asked = stuck(3).examined("the input matters", "question", "the model draws what it returns")
    assert not asked.found("input-ignored")


def test_both_are_one_finding() -> None:
    (finding,) = spreads(0.0).examined("the input matters", inputs=1).found("input-ignored")
    assert "give one and the same output" in finding.message
    assert "change of the output with other inputs" in finding.evidence


def test_a_signal_that_fades_with_depth_is_not_ignored() -> None:
    faded = layers(stuck(), a=1e-12, b=1e-6, c=1.0).examined("the input matters", inputs=1)
    assert not faded.found("input-ignored")
    strong = layers(stuck(), a=0.5, b=0.7, c=1.0).examined("the input matters", inputs=1)
    assert strong.found("input-ignored")


def test_outputs_that_are_no_numbers_do_not_differ_either() -> None:
    assert not spreads(0.0).event("non-finite", 0).found("input-ignored")
    assert spreads(0.0).event("non-finite", 120).found("input-ignored")
