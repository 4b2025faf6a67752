"""The rule `softmax-before-cross-entropy`: when it reports, and when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doctor.synthetic import Made


def behind(*nodes: str, kind: str = "cross_entropy", **facts: Any) -> Made:
    return Made().record(kind=kind, chain=list(nodes), **facts)


def test_a_second_softmax() -> None:
    (finding,) = behind("NllLoss", "LogSoftmax", "View", "Softmax").found(
        "softmax-before-cross-entropy"
    )
    assert "applies its own softmax" in finding.message
    assert finding.fix.startswith("Leave the softmax out of the model's forward")
    for last in ("LogSoftmax", "Addmm"):  # no harm; logits
        made = behind("NllLoss", "LogSoftmax", last)
        assert not made.found("softmax-before-cross-entropy")


def test_a_second_sigmoid() -> None:
    nodes = ("BinaryCrossEntropyWithLogits", "Sigmoid", "Addmm")
    (finding,) = behind(*nodes, kind="bce_with_logits").found("softmax-before-cross-entropy")
    assert "applies its own sigmoid" in finding.message
    assert not behind(*nodes, kind="bce").found("softmax-before-cross-entropy")


@pytest.mark.parametrize(("total", "reports"), [(1.0, True), (1.1, False)])
def test_rows_that_sum_to_one(total: float, reports: bool) -> None:
    prediction = {"shape": [8, 4], "min": 0.1, "max": 0.9}
    made = behind("NllLoss", "LogSoftmax", row_sums=[1.0, total], prediction=prediction)
    assert bool(made.found("softmax-before-cross-entropy")) is reports
