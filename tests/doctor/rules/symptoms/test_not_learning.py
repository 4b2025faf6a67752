"""The rule `not-learning`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.rules.symptoms import not_learning
from tests.doctor.ill import bad, stuck
from tests.doctor.synthetic import Made, flat


def test_sixty_steps_at_the_entropy_of_the_targets() -> None:
    (finding,) = stuck(60).found("not-learning")
    assert finding.severity == "error"
    assert "one answer for all inputs would score 2.3" in finding.message
    assert not stuck(59).found("not-learning")


def test_a_loss_below_what_a_guess_scores() -> None:
    assert bad(flat(200, 0.98 * np.log(10), 0.01)).found("not-learning")
    (note,) = bad(flat(200, 0.90 * np.log(10), 0.01)).found("not-learning")
    assert note.severity == "info"
    assert "little was learnt" in note.message
    assert not bad(flat(200, 0.80 * np.log(10), 0.01)).found("not-learning")
    assert not bad(flat(140, 0.90 * np.log(10), 0.01)).found("not-learning")


@pytest.mark.parametrize(
    ("others", "severity", "words"),
    [(True, "warning", "with the given optimizer"), (False, "error", "cannot overfit")],
)
def test_what_the_pre_flight_check_reports(others: bool, severity: str, words: str) -> None:
    finding = not_learning.of_few_samples("loss 2 → 2", 0.01, 40, others_learn=others)
    assert finding.severity == severity
    assert words in finding.message
    assert finding.last_step == 39
    assert finding.evidence["fall of the loss"].threshold == not_learning.LEARNT


def test_a_short_run_that_begins_where_another_ended_is_a_note() -> None:
    def severity(steps: int, **facts: object) -> str:
        losses = 1.1 + np.resize([0.0, 0.2, -0.2, 0.1, -0.1], steps)
        made = Made(steps).loss(losses).record(floored=True, **facts)
        (finding,) = made.found("not-learning")
        return finding.severity

    assert severity(150, kind="unknown") == "info"
    assert severity(800, kind="unknown") == "error"


@pytest.mark.parametrize(
    ("after", "adam", "words"),
    [
        (1.2, 1.1, "look at the data first"),
        (2.3, 1.1, "Look at the optimizer and its settings first"),
        (None, 1.1, "Look at the optimizer and its settings first"),
        (2.3, 2.3, "look at the network and the loss first"),
    ],
)
def test_where_one_batch_points_to(after: float | None, adam: float, words: str) -> None:
    facts = {
        "steps": 15, "before": 2.3, "after": after, "optimizer": "SGD", "rate": 0.1, "adam": adam,
        "adam_rate": 1e-3,
    }  # fmt: skip
    (finding,) = stuck(60).examined("it can learn at all", "fine", **facts).found("not-learning")
    assert finding.message.endswith(f"{words}.")
    assert finding.evidence["after as many with Adam (lr=0.001)"].value == adam


def test_one_batch_is_no_finding_by_itself() -> None:
    facts = {"steps": 15, "before": 2.3, "after": 2.3, "adam": 2.3, "adam_rate": 1e-3, "rate": 0.1}
    assert not stuck(59).examined("it can learn at all", "fine", **facts).found("not-learning")
