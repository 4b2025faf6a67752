"""The rule `loss-target-mismatch`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from tests.doctor.ill import NUMBERS
from tests.doctor.synthetic import Made


def test_a_binary_loss_on_three_classes() -> None:
    target = {"min": 0.0, "max": 2.0, "integral": True, "distinct": 3}
    (finding,) = Made().record(kind="bce_with_logits", target=target).found("loss-target-mismatch")
    assert "its targets are whole numbers from 0 to 2" in finding.message
    assert "one output per class" in finding.fix
    assert finding.evidence["different targets"].value == 3
    binary = Made().record(kind="bce_with_logits", target={**target, "max": 1.0})
    assert not binary.found("loss-target-mismatch")


def test_cross_entropy_with_a_single_output() -> None:
    made = Made().record(kind="cross_entropy", prediction={"shape": [32, 1]})
    (finding,) = made.found("loss-target-mismatch")
    assert "a single output: its softmax is always 1" in finding.message
    two = Made().record(kind="cross_entropy", prediction={"shape": [32, 2]})
    assert not two.found("loss-target-mismatch")


@pytest.mark.parametrize(("most", "reports"), [(49.0, True), (50.0, False)])
def test_up_to_fifty_whole_numbers_are_classes(most: float, reports: bool) -> None:
    target = {**NUMBERS, "max": most, "distinct": 50, "std": 14.4, "integral": True}
    made = Made().record(kind="mse", prediction={"shape": [32, 1]}, target=target)
    assert bool(made.found("loss-target-mismatch")) is reports


def test_classes_of_which_no_batch_has_all() -> None:
    target = {"shape": [16, 1], "distinct": 7, "min": 0.0, "max": 8.0, "std": 2.8, "integral": True}
    made = Made()
    for step, most in enumerate([8.0, 9.0, 7.0, 9.0]):
        made.record(step, kind="mse", prediction={"shape": [16, 1]}, target={**target, "max": most})
    (finding,) = made.found("loss-target-mismatch")
    assert "the numbers of 10 classes" in finding.message
