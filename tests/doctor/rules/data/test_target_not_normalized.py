"""The rule `target-not-normalized`: when it reports, and when it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.doctor.ill_losses import dollars
from tests.doctor.synthetic import Made, falling

CODE = "target-not-normalized"


def test_prices_as_they_stand() -> None:
    (finding,) = dollars().found(CODE)
    assert finding.severity == "warning"
    assert "mean 2.5e+05 and spread 5e+04, predictions began at a size of 0.2" in finding.message
    assert "one answer for all inputs would score 2.5e+09" in finding.message


def test_a_loss_that_does_not_stay_finite() -> None:
    values = np.r_[[6e10, 1e20, 1e30], np.full(197, np.nan)]
    (finding,) = dollars(values).found(CODE)
    assert "does not stay finite" in finding.message


def test_several_numbers_per_sample() -> None:
    (finding,) = dollars(shape=[32, 4], error=4e4).found(CODE)
    assert "errors are 0.8 times the spread" in finding.message
    assert not dollars(shape=[32, 4], error=2e4).found(CODE)


@pytest.mark.parametrize("kind", ["l1", "smooth_l1", "huber"])
def test_other_losses_of_numbers(kind: str) -> None:
    assert dollars(kind=kind, error=4e4).found(CODE)


@pytest.mark.parametrize(
    "facts",
    [
        {"target": (60.0, 40.0)},  # ages
        {"prediction": (2.4e5, 3.0)},  # a bias that begins at their mean
        {"prediction": (0.0, 4e4)},  # a last layer that is scaled
        {"kind": "bce"},
        {"kind": "other"},  # counts, under the likelihood of Poisson's distribution
        {"terms": [{"kind": "mse"}, {"kind": "other"}]},  # an actor and its critic
        {"last": (9e5, 2e5)},  # returns that grow with the agent
        {"steps": 50},
    ],
    ids=str,
)
def test_runs_that_look_alike(facts: dict[str, Any]) -> None:
    assert not dollars(**facts).found(CODE)


def test_large_targets_that_are_learnt() -> None:
    assert not dollars(falling(200, 6e10, 1e8, 1e7)).found(CODE)


def test_two_losses_at_once() -> None:
    assert not dollars().loss(falling(200), "train.py:30").found(CODE)


def test_a_file_without_numbers_of_predictions() -> None:
    made: Made = dollars()
    for record in made.losses:
        record.data["prediction"] = {"shape": [32]}
    assert not made.found(CODE)
