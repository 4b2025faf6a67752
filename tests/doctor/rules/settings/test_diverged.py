"""The rule `diverged`: when it reports, what it says of the cause, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill import CLASSES, lost
from tests.doctor.synthetic import Made, falling, flat


def test_a_rate_that_rose() -> None:
    (finding,) = lost(*[0.01] * 118, *[1.0] * 82).found("diverged")
    assert finding.first_step == 120
    assert "the learning rate rose from 0.01 at step" in finding.message
    assert "to 1 at step 118" in finding.message
    assert finding.evidence["factor of the change"].value == 100
    assert finding.fix.startswith("Keep the learning rate at about 0.01")


def test_where_nothing_changed_it_is_a_symptom() -> None:
    (finding,) = lost().found("diverged")
    assert "This is a symptom" in finding.message
    assert "factor of the change" not in finding.evidence


def test_it_says_what_a_guess_would_score() -> None:
    made = Made().loss(np.r_[falling(120), flat(80, 2.32)]).record(**CLASSES)
    (finding,) = made.found("diverged")
    assert "as high as what one answer for all inputs would score (2.3" in finding.message


def test_how_long_it_must_stay() -> None:
    assert lost().found("diverged", until=131)
    assert not lost().found("diverged", until=128)
    assert not lost().found("diverged", stays=100)
