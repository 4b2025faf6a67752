"""Whether one batch alone can be learnt: when it is known, and in which words."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nethook.doctor.history import History
from nethook.doctor.signals.one_batch import EXAMINED, OneBatch, one_batch
from nethook.examining.experiments.network.can_learn import CanLearn
from tests.doctor.synthetic import Made

FACTS: dict[str, Any] = {
    "steps": 15, "before": 2.3, "after": 2.3, "optimizer": "SGD", "rate": 0.1, "adam": 1.1,
    "adam_rate": 1e-3,
}  # fmt: skip


def tried(made: Made) -> OneBatch | None:
    return one_batch(History(made))  # type: ignore[arg-type]


def test_numbers_in_words() -> None:
    assert CanLearn.name == EXAMINED
    found = tried(Made().rate(0.1).examined(EXAMINED, "fine", **FACTS))
    assert found is not None
    assert found.words == (
        "Trained on one batch alone, a copy goes from 2.3 to 2.3 in 15 steps of SGD (lr=0.1), and "
        "to 1.1 with Adam (lr=0.001)."
    )
    assert [one.value for one in found.evidence.values()] == [2.3, 2.3, 1.1]
    assert found.own_fails
    assert found.adam_learns
    assert not found.own_learns
    assert not found.adam_fails


def test_a_loss_that_is_no_longer_finite() -> None:
    found = tried(Made().examined(EXAMINED, "fine", **{**FACTS, "after": None}))
    assert found is not None
    assert math.isinf(found.after)
    assert found.own_fails
    assert "to no finite number in 15 steps" in found.words
    assert [one.value for one in found.evidence.values()] == [2.3, 1.1]


@pytest.mark.parametrize(
    ("after", "fails", "learns"), [(2.28, True, False), (2.2, False, False), (2.07, False, True)]
)
def test_what_counts_as_learnt(after: float, fails: bool, learns: bool) -> None:
    found = tried(Made().examined(EXAMINED, "fine", **{**FACTS, "after": after}))
    assert found is not None
    assert (found.own_fails, found.own_learns) == (fails, learns)


def test_where_nothing_is_known() -> None:
    assert tried(Made()) is None
    assert tried(Made().examined(EXAMINED, "not applicable", "why")) is None
    assert tried(Made().examined(EXAMINED, "fine")) is None
    two = Made().examined(EXAMINED, "fine", **FACTS).examined(EXAMINED, "fine", **FACTS)
    assert tried(two) is None


def test_a_rate_that_was_still_warming_up_says_nothing() -> None:
    warm = {**FACTS, "rate": 0.01}
    assert tried(Made().rate(0.01, 0.1).examined(EXAMINED, "fine", **warm)) is None
    assert tried(Made().rate(0.01, 0.02).examined(EXAMINED, "fine", **warm)) is not None
