"""The rule `unbalanced-loss-terms`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill_losses import FALLS, LEARNT, STEPS, terms


def test_years_beside_a_cross_entropy() -> None:
    (finding,) = terms(FALLS, 0.68).found("unbalanced-loss-terms")
    assert finding.severity == "warning"
    assert "(mse 1.5e+03, cross_entropy 0.68 at the start)" in finding.message
    assert "the small one is still at 0.68" in finding.message
    assert finding.evidence["ratio of the terms"].value > 1000


def test_a_value_that_is_not_known_is_what_the_others_leave() -> None:
    (finding,) = terms(FALLS, 0.68, know=False).found("unbalanced-loss-terms")
    assert finding.evidence["ratio of the terms"].value > 1000


def test_a_sum_beside_a_mean_that_wins_at_once() -> None:
    falls = np.geomspace(36.0, 0.02, len(STEPS))
    small = np.r_[1.05, 0.9, 0.8, np.full(len(STEPS) - 3, 0.52)]
    kinds = ("other", "mse")
    assert terms(falls, small, 0.52, kinds).found("unbalanced-loss-terms")
    assert not terms(falls, small, 0.9, kinds).found("unbalanced-loss-terms")  # below: it learns


def test_the_factor_counts() -> None:
    assert not terms(FALLS, 0.68, factor=2000.0).found("unbalanced-loss-terms")
    assert terms(FALLS / 100, 0.68, factor=0.1).found("unbalanced-loss-terms")


def test_a_term_far_above_what_a_constant_scores_is_kept_up_by_something_else() -> None:
    assert not terms(FALLS, 0.7, constant=0.02).found("unbalanced-loss-terms")


def test_what_is_learnt_at_last() -> None:
    late = np.r_[np.full(8, 0.69), LEARNT[8:]]
    assert not terms(FALLS, late).found("unbalanced-loss-terms")


def test_parts_that_do_not_make_up_the_loss() -> None:
    made = terms(FALLS, 0.68)
    for record in made.losses:
        record.data["value"] *= 3
    assert not made.found("unbalanced-loss-terms")
