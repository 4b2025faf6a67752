"""The rule `class-collapse`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.doctor.ill import CLASSES, answers, stuck


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
