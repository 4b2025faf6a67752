"""The rule `repeated-batch`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.synthetic import Made


def repeated(new: int, steps: int = 200) -> Made:
    made = Made(steps).batch("repeated", np.r_[np.zeros(new), np.ones(steps - new)])
    return made.batch("size", 32)


def test_nine_steps_in_ten() -> None:
    (finding,) = repeated(20).found("repeated-batch")
    assert finding.severity == "info"
    assert finding.message.startswith("180 of 200 steps used the batch of the step before")
    assert "32 samples and no others" in finding.message
    assert not repeated(21).found("repeated-batch")


def test_fewer_than_twenty_steps() -> None:
    assert repeated(1, 20).found("repeated-batch")
    assert not repeated(1, 19).found("repeated-batch")


def test_a_share_is_never_above_one() -> None:
    (finding,) = Made().batch("repeated", 1.02).batch("size", 32).found("repeated-batch")
    assert finding.evidence["share of repeated batches"].value == 1.0
    assert finding.message.startswith("200 of 200 steps")
