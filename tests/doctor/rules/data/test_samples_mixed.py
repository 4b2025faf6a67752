"""The rule `samples-mixed`: when it reports, and when it asks."""

from __future__ import annotations

from typing import Any

from tests.doctor.synthetic import Made

REASON = "rows may be parts of one thing"


def mixed(outcome: str = "found", reason: str = "", **facts: Any) -> Made:
    usual = {"samples": 32, "others": 0.7, "smooth": True, "lines": ["train.py:12"]}
    return Made().examined("samples are independent", outcome, reason, **{**usual, **facts})


def test_a_loader_shows_that_rows_are_samples() -> None:
    made = mixed(shown="the data loader puts 32 samples into a batch", operation="a softmax")
    (finding,) = made.found("samples-mixed")
    assert finding.severity == "error"
    assert finding.lines == ("train.py:12",)
    assert "0.7 times as far" in finding.message
    assert "by a softmax (the data loader puts 32 samples into a batch)" in finding.message


def test_it_asks_where_nothing_shows_that_rows_are_samples() -> None:
    (finding,) = mixed("question", REASON).found("samples-mixed")
    assert finding.severity == "info"
    assert "Is that meant? Rows may be parts of one thing." in finding.message


def test_evaluations_in_batches_of_another_size_show_it() -> None:
    made = mixed("question", REASON).batch("size", 32.0)
    made.info["evaluation_sizes"] = {"": [32]}
    assert made.found("samples-mixed")[0].severity == "info"
    made.info["evaluation_sizes"] = {"other": [1]}
    assert made.found("samples-mixed")[0].severity == "info"
    made.info["evaluation_sizes"] = {"": [32, 1]}
    (finding,) = made.found("samples-mixed")
    assert finding.severity == "warning"
    assert "batches of 32 in training, of 1 in evaluation" in finding.message


def test_a_last_batch_that_is_smaller_shows_it() -> None:
    sizes = [32.0] * 200
    sizes[49::50] = [8.0] * 4
    (finding,) = mixed("question", REASON).batch("size", sizes).found("samples-mixed")
    assert finding.severity == "warning"
    assert "now and then a last one of 8" in finding.message
    sizes[49::50] = [40.0] * 4  # a set that grows is no last batch
    made = mixed("question", REASON).batch("size", sizes)
    assert made.found("samples-mixed")[0].severity == "info"


def test_a_choice_among_rows_stays_a_question() -> None:
    made = mixed("question", REASON, smooth=False).batch("size", 32.0)
    made.info["evaluation_sizes"] = {"": [1]}
    assert made.found("samples-mixed")[0].severity == "info"


def test_a_weak_effect_is_none() -> None:
    assert not mixed(others=1e-4).found("samples-mixed")
    assert mixed(others=1e-4).found("samples-mixed", others=1e-5)
