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


KL = np.geomspace(2.7, 1e-4, len(STEPS))
FROM_THE_START = np.r_[1.0, 0.97, np.full(len(STEPS) - 2, 0.53)]


def test_a_term_that_is_brought_down_to_nothing() -> None:
    (finding,) = terms(KL, FROM_THE_START, 0.53, ("other", "mse")).found("unbalanced-loss-terms")
    assert "one written by hand was brought down to nothing (from 2.7 to 0.0001)" in finding.message
    assert "mse is still at 0.53" in finding.message


def test_terms_of_one_size_of_which_none_is_brought_down_to_nothing() -> None:
    kinds = ("other", "mse")
    held = np.geomspace(2.7, 0.3, len(STEPS))  # a code that costs something, and tells something
    assert not terms(held, FROM_THE_START, 0.53, kinds).found("unbalanced-loss-terms")
    learnt = np.geomspace(1.0, 0.1, len(STEPS))
    assert not terms(KL, learnt, 0.53, kinds).found("unbalanced-loss-terms")  # a penalty, met
    tiny = np.full(len(STEPS), 1e-6)
    assert not terms(tiny, FROM_THE_START, 0.53, kinds).found("unbalanced-loss-terms")
    beside = np.geomspace(2000.0, 20.0, len(STEPS))  # small by its start, and not by the other
    assert not terms(beside, FROM_THE_START, 0.9, kinds).found("unbalanced-loss-terms")
    rises = KL[::-1].copy()  # a weight that is raised slowly
    assert not terms(rises, FROM_THE_START, 0.53, kinds).found("unbalanced-loss-terms")
