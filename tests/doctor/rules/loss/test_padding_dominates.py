"""The rule `padding-dominates`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill_losses import OF_LOGITS, STEPS, padded
from tests.doctor.synthetic import Made


def test_most_targets_are_padding() -> None:
    (finding,) = padded(0.9, source="/home/me/train.py:42").found("padding-dominates")
    assert finding.severity == "warning"
    assert "90% of the targets that the loss (train.py:42) averages over are 0" in finding.message
    assert "100% of which is predicted rightly, and 40% of the rest" in finding.message
    assert finding.lines == ("/home/me/train.py:42",)


def test_where_the_rest_is_learnt_as_well_it_is_a_note() -> None:
    (finding,) = padded(0.9, 1.0, 0.99).found("padding-dominates")
    assert finding.severity == "info"


def test_where_answers_are_not_known() -> None:
    nan = float("nan")
    (finding,) = padded(0.9, nan, nan).found("padding-dominates")
    assert finding.severity == "warning"
    assert "predicted rightly" not in finding.message


def test_half_is_the_limit() -> None:
    assert padded(0.51).found("padding-dominates")
    assert not padded(0.49).found("padding-dominates")
    assert padded(0.49).found("padding-dominates", share=0.4)


def test_padding_of_several_classes_is_none() -> None:
    made = Made()
    for step in range(8):
        made.record(step, **OF_LOGITS, padding={"share": 0.9, "target": float(step % 3)})
    assert not made.found("padding-dominates")


def test_a_batch_without_padding() -> None:
    made = padded(0.9)
    made.record(199, **OF_LOGITS, padding={"share": 0.1, "target": 0.0})
    assert not made.found("padding-dominates")


def test_frames_of_numbers_are_a_question() -> None:
    nan = float("nan")
    numbers = {"share": 0.8, "target": 0.0, "accuracy": nan, "accuracy_elsewhere": nan}
    made = Made().record(*STEPS, kind="mse", chain=["MseLoss"], padding=numbers)
    (finding,) = made.found("padding-dominates")
    assert finding.severity == "info"
    assert "after the end of their sequence" in finding.message
