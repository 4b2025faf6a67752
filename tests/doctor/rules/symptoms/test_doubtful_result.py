"""The rule `doubtful-result`: when a run counts as not judged, and when it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nethook.doctor.verdict import verdict_of
from tests.doctor.ill import CLASSES, well
from tests.doctor.synthetic import Made, falling, flat

FIT = "answers fit their samples"


def plain(start: float, end: float) -> Made:
    """A loss of which nothing is known but its course."""
    return Made(200).loss(falling(200, start, end)).record(kind="other", floored=True)


def fits(own: float, others: float, **facts: Any) -> Made:
    return well().examined(FIT, "fine", step=199, own=own, others=others, **facts)


def test_answers_that_are_worth_no_more_than_those_to_others() -> None:
    (finding,) = fits(0.5, 0.52).found("doubtful-result")
    assert finding.severity == "info"
    assert "the loss of a batch is 0.5, and 0.52 with each sample's answer" in finding.message
    assert finding.evidence["loss by that with the answers of others"].value == pytest.approx(
        0.5 / 0.52
    )


def test_answers_that_are_worth_something() -> None:
    assert not fits(0.4, 0.52).found("doubtful-result")
    one_of_two = fits(0.5, 0.52).examined(FIT, "fine", step=199, loss="b.py:3", own=0.1, others=2.0)
    assert not one_of_two.found("doubtful-result")
    assert not fits(-3.0, -2.0).found("doubtful-result")  # a log density
    assert not well().examined(FIT, "not applicable", "no targets").found("doubtful-result")
    assert not well().found("doubtful-result")


def test_an_evaluation_that_is_worse_than_one_answer_for_all() -> None:
    at = [50, 100, 150, 199]
    made = well().loss([3.0, 3.1, 3.0, 3.2], "eval", "eval", at=at)
    made.record(50, 199, name="eval", phase="eval", **CLASSES)
    (finding,) = made.found("doubtful-result")
    assert "one answer for all inputs would score 2.3" in finding.message
    fine = well().loss([1.0, 0.8, 0.7, 0.9], "eval", "eval", at=at)
    assert not fine.record(50, 199, name="eval", phase="eval", **CLASSES).found("doubtful-result")
    other = well().loss([30.0, 31.0, 30.0, 32.0], "eval", "eval", at=at)
    assert not other.record(50, 199, name="eval", phase="eval", kind="l1").found("doubtful-result")


def test_a_loss_that_fell_by_little() -> None:
    assert plain(2.0, 1.9).found("doubtful-result")
    assert not plain(2.0, 1.0).found("doubtful-result")
    assert not plain(-1.0, -1.02).found("doubtful-result")
    short = Made(50).loss(flat(50)).record(kind="other", floored=True)
    assert not short.found("doubtful-result")
    judged = plain(2.0, 1.9).examined(FIT, "fine", step=199, own=0.1, others=2.0)
    assert not judged.found("doubtful-result")  # it is known that something was learnt


def test_such_a_run_is_not_judged() -> None:
    findings = [finding.to_dict() for finding in fits(0.5, 0.52).found("doubtful-result")]
    made = well()
    made.info["diagnosis"] = {"checks": 50}
    made.info["losses"] = ["train.py:10"]
    made.info["totals"] = {"steps": 200, "backwards": 200}
    verdict = verdict_of(made, findings)  # type: ignore[arg-type]
    assert verdict.state == "not judged"
    assert "nothing shows that it does its job" in str(verdict)


def test_losses_that_do_not_measure_progress() -> None:
    two = Made().loss(flat(200)).loss(flat(200), "train.py:20").record(kind="bce", floored=True)
    (finding,) = two.found("doubtful-result")
    assert "its 2 losses are trained at once" in finding.message
    policy = Made().loss(np.random.default_rng(0).standard_normal(200)).record(floored=False)
    (finding,) = policy.found("doubtful-result")
    assert "as that of a policy" in finding.message
    learnt = policy.examined("answers fit their samples", "fine", own=0.1, others=1.0)
    assert not learnt.found("doubtful-result")
