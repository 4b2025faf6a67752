"""The rule `loss-target-mismatch`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from tests.doctor.ill import NUMBERS
from tests.doctor.ill_losses import given
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


def left_out(ignored: int = 0, share: float = 0.5, distinct: int = 1, rows: int = 48) -> Made:
    return (
        Made()
        .batch("size", 48)
        .record(
            kind="nll",
            options={"ignore_index": ignored},
            prediction={"shape": [rows, 2]},
            target={
                "shape": [rows],
                "ignored": share,
                "distinct": distinct,
                "min": 1.0,
                "max": 1.0,
            },
        )
    )


def ones_in_a_row(fewest: float, most: float, columns: int = 5, **target: float) -> Made:
    facts = {"shape": [32, columns], "min": 0.0, "max": 1.0, "row_sums": [fewest, most], **target}
    prediction = {"shape": [32, columns]}
    return given("cross_entropy", target=facts, prediction=prediction, source="train.py:12")


def test_several_classes_at_once() -> None:
    (finding,) = ones_in_a_row(0, 4).found("loss-target-mismatch")
    assert finding.severity == "warning"
    assert "its targets have 0 to 4 ones in a row" in finding.message
    assert "rows without any have no loss at all." in finding.message
    assert finding.lines == ("train.py:12",)
    (finding,) = ones_in_a_row(1, 4).found("loss-target-mismatch")
    assert finding.severity == "info"  # the items that somebody has clicked on
    assert finding.message.endswith("several right answers?")


def test_rows_that_are_no_several_classes() -> None:
    assert not ones_in_a_row(1, 1).found("loss-target-mismatch")  # one-hot
    assert not ones_in_a_row(1, 1, max=0.9).found("loss-target-mismatch")  # shares
    assert not ones_in_a_row(0.5, 3.2).found("loss-target-mismatch")  # weights of shares
    assert not ones_in_a_row(0, 3, max=3.0).found("loss-target-mismatch")  # weights of samples
    assert not ones_in_a_row(1, 4, columns=32).found("loss-target-mismatch")  # contrastive
    other = given("bce_with_logits", target={"min": 0.0, "max": 1.0, "row_sums": [0.0, 4.0]})
    assert not other.found("loss-target-mismatch")


def test_an_ignore_index_that_leaves_one_class() -> None:
    (finding,) = left_out().found("loss-target-mismatch")
    assert finding.severity == "error"
    assert "leaves out targets of class 0 (ignore_index=0), 50% of them" in finding.message
    assert "nothing to tell apart" in finding.message
    assert not left_out(ignored=-100).found("loss-target-mismatch")
    assert not left_out(share=0.0).found("loss-target-mismatch")


def test_an_ignore_index_that_hides_samples_is_a_question() -> None:
    (finding,) = left_out(distinct=4).found("loss-target-mismatch")
    assert finding.severity == "info"
    assert finding.message.endswith("Is that meant?")
    # Padding of sequences: more targets than there are samples.
    assert not left_out(distinct=4, rows=480).found("loss-target-mismatch")


@pytest.mark.parametrize(("blank", "reports"), [(0, True), (7, True), (8, False), (3, False)])
def test_a_blank_that_the_texts_contain(blank: int, reports: bool) -> None:
    target = {"min": 0.0, "max": 7.0, "integral": True, "distinct": 8, "between": 5.0}
    made = Made().record(kind="ctc", options={"blank": blank}, target=target)
    assert bool(made.found("loss-target-mismatch")) is reports


def test_targets_of_older_runs_have_padding_in_them() -> None:
    target = {"min": 0.0, "max": 7.0, "integral": True, "distinct": 8}
    made = Made().record(kind="ctc", options={"blank": 0}, target=target)
    assert not made.found("loss-target-mismatch")


def test_zeros_for_a_loss_that_takes_signs() -> None:
    facts = {"kind": "cosine_embedding", "share": 0.4, "lines": ["train.py:9"]}
    (finding,) = Made().examined("targets are signs", **facts).found("loss-target-mismatch")
    assert (
        "is cosine_embedding, which takes 1 and -1 as targets, and 40% of them" in finding.message
    )
    assert finding.lines == ("train.py:9",)
    assert not Made().examined("targets are signs", "fine").found("loss-target-mismatch")
