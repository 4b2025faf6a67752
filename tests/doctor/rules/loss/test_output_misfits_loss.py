"""The rule `output-misfits-loss`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from tests.doctor.ill_losses import given, logarithms


def test_probabilities_where_logarithms_are_taken() -> None:
    made = logarithms(0.01, 0.2, value=-0.1, source="/home/me/train.py:42")
    (finding,) = made.found("output-misfits-loss")
    assert finding.severity == "error"
    assert "gets probabilities between 0.01 and 0.2 (it is -0.1" in finding.message
    assert finding.lines == ("/home/me/train.py:42",)
    assert "log_softmax" in finding.fix


def test_scores_where_logarithms_are_taken() -> None:
    (finding,) = logarithms(-2.0, 3.0, (-4.0, 5.0), value=1.2).found("output-misfits-loss")
    assert "gets scores between -2 and 3" in finding.message
    assert "without end" in finding.message
    assert "it is 1.2" not in finding.message  # above zero, which proves nothing


@pytest.mark.parametrize(
    ("last", "kind", "words"),
    [
        ("Relu", "cross_entropy", "no class can be ruled out"),
        ("Relu", "bce_with_logits", "no probability can be below a half"),
        ("Tanh", "cross_entropy", "differ by 2 at most"),
        ("Tanh", "bce_with_logits", "between 0.27 and 0.73"),
        ("Softmax", "bce_with_logits", "between 0.5 and 0.73"),
    ],
)
def test_an_activation_before_a_loss_of_logits(last: str, kind: str, words: str) -> None:
    own = ["NllLoss", "LogSoftmax"] if kind == "cross_entropy" else ["BinaryCrossEntropyWithLogits"]
    (finding,) = given(kind, *own, "View", last).found("output-misfits-loss")
    assert finding.severity == "warning"
    assert words in finding.message


def test_what_another_rule_reports() -> None:
    made = given("cross_entropy", "NllLoss", "LogSoftmax", "Softmax")
    assert not made.found("output-misfits-loss")
    assert made.found("softmax-before-cross-entropy")


def test_the_softmax_of_one_score() -> None:
    made = given("bce", "BinaryCrossEntropy", "Softmax", prediction={"shape": [32, 1]})
    (finding,) = made.found("output-misfits-loss")
    assert "always 1" in finding.message


def test_one_loss_among_many() -> None:
    made = logarithms(0.01, 0.2)
    made.record(*range(20, 40), kind="mse")
    assert not made.found("output-misfits-loss")


def test_probabilities_in_a_divergence() -> None:
    prediction = {"shape": [32, 3], "min": 0.1, "max": 0.7}
    facts = {"prediction": prediction, "row_sums": [1.0, 1.0]}
    (finding,) = given("kl_div", "Softmax", value=-1.1, **facts).found("output-misfits-loss")
    assert "gets probabilities between 0.1 and 0.7 (it is -1.1" in finding.message
    # One less a product: a score, which is never below zero.
    assert not given("kl_div", "Softmax", value=0.4, **facts).found("output-misfits-loss")
