"""The rule `loss-broadcast`: when it reports, and when it does not."""

from __future__ import annotations

from typing import Any

from tests.doctor.ill import stuck
from tests.doctor.synthetic import Made, falling


def compared(prediction: list[int], target: list[int], *steps: int) -> Made:
    return Made().record(
        *steps,
        kind="mse",
        broadcast=True,
        prediction={"shape": prediction},
        target={"shape": target},
        source="/home/me/train.py:42",
    )


def test_a_column_and_a_row() -> None:
    (finding,) = compared([32, 1], [32]).found("loss-broadcast")
    assert "the loss (train.py:42) compares predictions of shape (32, 1)" in finding.message
    assert "they are broadcast against each other" in finding.message
    assert not compared([32, 1], [1]).found("loss-broadcast")
    assert not compared([32, 32], [32]).found("loss-broadcast")


def test_how_many_records_it_takes() -> None:
    assert compared([32, 1], [32], 0).found("loss-broadcast")  # all that there is
    assert not compared([32, 1], [32], 0).record(1, 2).found("loss-broadcast")


def test_a_target_that_was_not_kept() -> None:
    facts: dict[str, Any] = {"broadcast": True, "broadcast_to": [32, 32]}
    made = stuck().record(**facts, prediction={"shape": [32, 1]}, target={})
    (finding,) = made.found("loss-broadcast")
    assert "targets of shape (32,)" in finding.message
    learns = Made().loss(falling(200)).record(**facts, prediction={"shape": [32, 1]}, target={})
    assert not learns.found("loss-broadcast")


def test_answers_and_labels_that_are_broadcast() -> None:
    facts = {"kind": "equal", "source": "train.py:9", "broadcast": True, "rows": 40}
    sides = {"prediction": {"shape": [40]}, "target": {"shape": [40, 1]}}
    made = Made().record(50, 100, name="eval", phase="eval", **facts, **sides, accuracy=0.8)
    (finding,) = made.found("loss-broadcast")
    assert finding.severity == "warning"
    assert "answers of shape (40,) with labels of shape (40, 1)" in finding.message
    labels = Made().record(50, 100, name="eval", phase="eval", **facts, **sides, accuracy=1.0)
    assert not labels.found("loss-broadcast")
