"""Evaluation repeats itself."""

from __future__ import annotations

import pytest

from nethook.examining.experiments.evaluation_repeats import EvaluationRepeats
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL


@pytest.mark.parametrize(
    ("name", "operation", "p"),
    [
        ("dropout_without_training", "F.dropout", 0.4),
        ("dropout_made_in_the_forward", "F.dropout", 0.4),
        ("dropout_of_attention_always_on", "F.scaled_dot_product_attention", 0.3),
        ("dropout_in_a_list", "F.dropout", 0.4),
    ],
)
def test_dropout_that_nobody_switches_off(name: str, operation: str, p: float) -> None:
    result = EvaluationRepeats().run(ILL[name][1]().rehearsal())
    assert (result.outcome, result.facts["operation"], result.facts["p"]) == ("found", operation, p)
    (line,) = result.facts["lines"]
    assert line.startswith("ill.py:")


def test_dropout_that_is_switched_on_in_words() -> None:
    for name in ("monte_carlo_dropout", "monte_carlo_dropout_layer"):
        result = EvaluationRepeats().run(HEALTHY[name]().rehearsal())
        assert result.outcome == "question"
        assert "by the script itself" in result.reason


def test_a_model_that_samples() -> None:
    result = EvaluationRepeats().run(HEALTHY["variational_autoencoder"]().rehearsal())
    assert result.outcome == "question"
    assert "operation" not in result.facts


def test_it_repeats_itself() -> None:
    for name in ("dropout_as_it_should_be", "stochastic_depth_written_by_hand"):
        assert EvaluationRepeats().run(HEALTHY[name]().rehearsal()).outcome == "fine"
