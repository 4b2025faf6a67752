"""The first loss, and what is usual."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from nethook.doctor.signals.first_loss import first_loss, usual_first_loss
from tests.doctor.synthetic import Made


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_equal_logits_score_the_usual_cross_entropy(classes: int) -> None:
    target = torch.arange(8) % classes
    score = float(F.cross_entropy(torch.zeros(8, classes), target))
    usual = usual_first_loss("cross_entropy", {"shape": [8, classes]}, {})
    assert usual == pytest.approx(score, rel=1e-6)


def test_a_logit_of_zero_scores_the_usual_binary_loss() -> None:
    score = float(F.binary_cross_entropy_with_logits(torch.zeros(4), torch.ones(4)))
    assert usual_first_loss("bce_with_logits", {}, {}) == pytest.approx(score, rel=1e-6)


def test_an_answer_of_zero_scores_the_usual_squared_error() -> None:
    target = torch.tensor([1.0, 2.0, 6.0])
    facts = {"mean": float(target.mean()), "std": float(target.std(correction=0))}
    score = float(F.mse_loss(torch.zeros(3), target))
    assert usual_first_loss("mse", {}, facts) == pytest.approx(score, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "prediction", "target"),
    [
        ("cross_entropy", {"shape": [8, 1]}, {}),
        ("cross_entropy", {}, {}),
        ("mse", {}, {"mean": 1.0}),
        ("mse", {}, {"mean": 0.0, "std": 0.0}),
        ("other", {"shape": [8, 10]}, {"mean": 1.0, "std": 1.0}),
    ],
)
def test_what_is_usual_may_not_be_known(
    kind: str, prediction: dict[str, object], target: dict[str, object]
) -> None:
    assert usual_first_loss(kind, prediction, target) is None


def test_the_first_record_decides() -> None:
    facts = {"kind": "cross_entropy", "prediction": {"shape": [8, 10]}}
    made = Made().record(0, value=7.0, **facts).record(1, value=1.0, **facts)
    assert first_loss(made.history()) == (7.0, pytest.approx(math.log(10)))


@pytest.mark.parametrize(
    "facts", [{"value": math.inf}, {"value": None}, {"options": {"weight": True}}]
)
def test_losses_that_cannot_be_compared(facts: dict[str, object]) -> None:
    usual = {"kind": "cross_entropy", "prediction": {"shape": [8, 10]}, "value": 3.0}
    assert first_loss(Made().record(0, **{**usual, **facts}).history()) is None
    assert first_loss(Made().history()) is None
