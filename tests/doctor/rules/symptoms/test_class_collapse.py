"""The rule `class-collapse`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.doctor.ill import CLASSES, answers, stuck, well
from tests.doctor.synthetic import Made, falling


def test_one_answer_in_nine_of_ten() -> None:
    (finding,) = answers(stuck(), [150, 10] + [0] * 8).found("class-collapse")
    assert "class 0 94% of the time" in finding.message
    share = np.array([150, 10]) / 160
    expected = float(-(share * np.log(share)).sum() / np.log(10))
    ratio = finding.evidence["entropy of answers by that of targets"].value
    assert ratio == pytest.approx(expected)
    assert not answers(stuck(), [140, 20] + [0] * 8).found("class-collapse")


def test_how_a_network_begins_is_not_reported() -> None:
    assert answers(stuck(40), [160] + [0] * 9).found("class-collapse")
    assert not answers(stuck(39), [160] + [0] * 9).found("class-collapse")


def test_targets_of_one_class() -> None:
    made = stuck()
    made.losses.clear()
    one = {**CLASSES, "class_counts": [160] + [0] * 9}
    made.record(*range(0, 200, 20), **one, argmax_counts=[160] + [0] * 9)
    assert not made.found("class-collapse")


def test_one_answer_in_the_first_step_is_not_its_onset() -> None:
    made = stuck()
    made.losses.clear()
    one, many = [160] + [0] * 9, [16] * 10
    for step, counts in ((0, one), (20, many), (60, many), (120, one), (160, one), (190, one)):
        made.record(step, **CLASSES, argmax_counts=counts, accuracy=0.1)
    (finding,) = made.found("class-collapse")
    assert finding.first_step == 120


def rare(made: Made, wanted: list[int], given: list[int]) -> Made:
    made.losses.clear()
    facts = {**CLASSES, "class_counts": wanted, "argmax_counts": given}
    return made.record(*range(0, 200, 20), **facts, accuracy=0.97)


def test_rare_classes_that_are_never_predicted() -> None:
    (finding,) = rare(well(), [62, 1, 1], [64, 0, 0]).found("class-collapse")
    assert finding.severity == "info"  # the loss falls: they may not be foreseeable
    assert "has predicted 0 of 10 such" in finding.message
    assert not rare(well(), [62, 1, 1], [62, 1, 1]).found("class-collapse")
    assert not rare(well(), [64, 0, 0], [64, 0, 0]).found("class-collapse")
    assert not rare(well(), [40, 20, 4], [64, 0, 0]).found("class-collapse")  # not that frequent


def mask(yes: float, said: float, shape: list[int]) -> Made:
    made = well()
    made.losses.clear()
    target = {"positive_share": yes, "binary_share": 1.0, "shape": shape}
    facts = {"kind": "bce_with_logits", "elements": 4096, "target": target}
    return made.record(*range(0, 200, 20), **facts, prediction={"positive_share": said})


def test_masks_that_are_all_background() -> None:
    image = [16, 1, 16, 16]
    (finding,) = mask(0.016, 0.0, image).found("class-collapse")
    assert finding.severity == "warning"
    assert "nearly every element" in finding.message
    assert not mask(0.016, 0.01, image).found("class-collapse")
    assert not mask(0.4, 0.0, image).found("class-collapse")
    (note,) = mask(0.016, 0.0, [4096]).found("class-collapse")  # clicks
    assert note.severity == "info"


def rare_in(late: int, early: int, predicted: int = 0) -> Made:
    made = Made(400).loss(falling(400, 0.3, 0.07))
    for at, step in enumerate([0, 48, 60, 76, 96, 250, 300, 380]):
        rare = late if step >= 200 else early
        data = {"class_counts": [48 - rare, rare], "argmax_counts": [48 - predicted, predicted]}
        made.record(
            step, kind="cross_entropy", **data if at else {**data, "argmax_counts": [0, 48]}
        )
    return made


def test_rare_classes_of_small_batches_are_counted_from_the_first_steps_on() -> None:
    (finding,) = rare_in(late=0, early=2).found("class-collapse")
    assert "predicted 0 of 8 such since step 48" in finding.message
    (finding,) = rare_in(late=3, early=2).found("class-collapse")
    assert "predicted 0 of 9 such since step 250" in finding.message
    assert not rare_in(late=0, early=1).found("class-collapse")
    assert not rare_in(late=0, early=2, predicted=1).found("class-collapse")
