"""The rule `overfitting`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill import evaluated, stuck


def test_an_evaluation_that_rises() -> None:
    (finding,) = evaluated([2.0, 1.0, 1.0, 1.0, 1.1, 1.2, 1.3]).found("overfitting")
    assert finding.first_step == 73  # the third of seven, from 10 to 199
    assert "and has risen by 27% since" in finding.message
    assert finding.evidence["evaluations"].value == 7


def test_a_rise_of_less_than_a_tenth() -> None:
    assert not evaluated([2.0, 1.0, 1.0, 1.0, 1.02, 1.04, 1.08]).found("overfitting")


def test_fewer_than_five_evaluations() -> None:
    assert not evaluated([1.0, 1.2, 1.4, 1.6]).found("overfitting")
    assert evaluated([1.0, 1.2, 1.4, 1.6, 1.8]).found("overfitting")


def test_a_training_loss_that_does_not_fall() -> None:
    made = stuck().loss([1.0, 1.2, 1.4, 1.6, 1.8], "eval", "eval", at=[10, 50, 90, 130, 170])
    assert not made.found("overfitting")


def test_noise_of_the_evaluation() -> None:
    chance = np.random.default_rng(0)
    noisy = [1.0 + 0.15 * chance.standard_normal(15) for _ in range(200)]
    reported = sum(bool(evaluated(values.tolist()).found("overfitting")) for values in noisy)
    assert reported <= 4  # by chance, a few rise steadily


def test_a_rise_above_the_noise() -> None:
    chance = np.random.default_rng(0)
    values = np.r_[2.0, 1.3, 1.0, np.linspace(1.0, 2.2, 12)] + 0.05 * chance.standard_normal(15)
    assert evaluated(values.tolist()).found("overfitting")


def test_one_batch_that_is_all_the_data() -> None:
    made = evaluated([2.0, 1.0, 1.0, 1.0, 1.1, 1.2, 1.3]).batch("repeated", 1.0)
    assert made.found("overfitting")[0].severity == "info"


def test_another_loss_that_is_at_its_best_at_the_end() -> None:
    """A codebook that moves: its distance rises while what is rebuilt gets better."""
    made = evaluated([2.0, 1.0, 1.0, 1.0, 1.1, 1.2, 1.3])
    better = [1.0, 0.6, 0.4, 0.3, 0.25, 0.22, 0.2]
    at = [10, 41, 73, 104, 136, 167, 199]
    assert not made.loss(better, "rebuilt", "eval", at=at).found("overfitting")
    worse = [1.0, 0.6, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert made.loss(worse, "rebuilt", "eval", at=at).found("overfitting")
