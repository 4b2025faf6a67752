"""The rule `weight-decay-too-strong`: when it reports, and when it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.doctor.ill import CLASSES, bad, decay
from tests.doctor.synthetic import Made, falling, flat


@pytest.mark.parametrize(("end", "reports"), [(0.49, True), (0.51, False)])
def test_weights_that_shrink_to_half(end: float, reports: bool) -> None:
    made = decay(50.0).series("fc.weight", "params", rms=np.geomspace(1.0, end, 200))
    found = made.found("weight-decay-too-strong")
    assert bool(found) is reports
    if reports:
        assert found[0].sites == ("fc.weight",)
        assert "weight decay 50 at a rate of 0.01 takes 50.00%" in found[0].message


def test_an_optimizer_with_a_decay_that_outweighs_all_else() -> None:
    made = decay(10.0).rate(*[0.003] * 200).loop("update_ratio", 0.031)
    made.series("fc.weight", "params", rms=np.geomspace(1.0, 0.7, 200))
    (finding,) = made.found("weight-decay-too-strong")
    assert finding.evidence["decay by the whole update"].value > 0.9
    assert (
        not decay(10.0)
        .rate(*[0.003] * 200)
        .loop("update_ratio", 0.3)
        .series("fc.weight", "params", rms=np.geomspace(1.0, 0.7, 200))
        .found("weight-decay-too-strong")
    )


def forgetting(kind: str, rate: float, course: np.ndarray[Any, Any]) -> Made:
    """A run with a decay of 10, and weights that keep their size."""
    made = bad(course).rate(*[rate] * 200).parameter("fc.weight").loop("update_ratio", 0.03)
    made.event("groups", groups=[{"weight_decay": 10.0}], type=kind)
    return made.series("fc.weight", "params", rms=1.5)


STALLED = np.r_[falling(60, 2.3, 1.1), flat(140, 1.1)]


def test_weights_that_forget_as_fast_as_they_learn() -> None:
    (finding,) = forgetting("AdamW", 0.003, STALLED).found("weight-decay-too-strong")
    assert "takes 3.00% of the weights in every step" in finding.message
    assert "is halved in 23 steps" in finding.message


@pytest.mark.parametrize(
    ("kind", "rate", "course"),
    [
        ("Adam", 0.003, STALLED),  # adds it to gradients that it brings to another size
        ("AdamW", 1e-4, STALLED),  # a thousandth in a step
        ("AdamW", 0.003, falling(200)),  # learns well all the same
        ("AdamW", 0.003, falling(200, 2.3, 1.0)[:200]),  # still falls
    ],
)
def test_decay_that_does_no_harm(kind: str, rate: float, course: np.ndarray[Any, Any]) -> None:
    assert not forgetting(kind, rate, course).found("weight-decay-too-strong")


def penalized(end: float, size: float, penalties: int = 2) -> Made:
    """A loss with penalties, that ends like this, and weights that end at a share of their size."""
    made = Made(200).loss(np.r_[np.linspace(25.0, 2.4, 50), flat(150, end)])
    made.record(**CLASSES, penalties=penalties, terms=[{"kind": "penalty"}])
    made.parameter("fc.weight")
    return made.series("fc.weight", "params", rms=np.geomspace(1.0, size, 200))


def test_a_penalty_that_outweighs_the_loss() -> None:
    (finding,) = penalized(2.31, 0.01).found("weight-decay-too-strong")
    assert "has a penalty on the weights" in finding.message
    assert finding.sites == ("fc.weight",)
    for meant in (penalized(0.4, 0.01), penalized(2.31, 0.6), penalized(2.31, 0.01, 0)):
        assert not meant.found("weight-decay-too-strong")
    nothing_known = penalized(2.31, 0.01)
    nothing_known.losses.clear()
    assert not nothing_known.found("weight-decay-too-strong")
