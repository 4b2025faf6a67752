"""The rule `repeated-batch`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill import well
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


def test_a_sampler_with_one_weight_per_class() -> None:
    reach = {"within_reach": 10, "samples": 700}
    made = well().examined("the loader reaches every sample", **reach)
    (finding,) = made.found("repeated-batch")
    assert finding.severity == "warning"
    assert "has 10 weights, and the data set 700 samples" in finding.message
    assert finding.first_step == 2
    assert not well().examined("the loader reaches every sample", "fine").found("repeated-batch")
    assert (
        not well()
        .examined("the loader reaches every sample", "not applicable")
        .found("repeated-batch")
    )


def some_batches(different: int, samples: int = 6000, *, in_order: bool = True) -> Made:
    marks = [float(at % different) for at in range(60)]
    made = well().batch("repeated", 0.0).batch("size", 50)
    made.scalar("batch_fingerprint", range(60), marks)
    reach = "the loader reaches every sample"
    return made.examined(reach, "fine", samples=samples, in_order=in_order)


def test_epochs_that_end_after_a_few_batches() -> None:
    (finding,) = some_batches(5).found("repeated-batch")
    assert finding.severity == "warning"
    assert "5 different ones, with 250 of the 6000 samples" in finding.message


def test_batches_that_are_all_there_is() -> None:
    assert not some_batches(5, 260).found("repeated-batch")
    assert not some_batches(5, in_order=False).found("repeated-batch")
    assert not some_batches(30).found("repeated-batch")  # each was met twice
