"""The rule `position-ignored`: when it asks, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import stuck, well
from tests.doctor.synthetic import Made

EXAMINED = "the order matters"


def test_it_asks_where_little_is_learnt() -> None:
    made = stuck().examined(EXAMINED, "question", "it may be a set", steps=9, rows=32)
    (finding,) = made.found("position-ignored")
    assert finding.severity == "info"
    assert "sequences of 9 steps were turned round" in finding.message
    assert "Is that meant? It may be a set" in finding.message


def test_it_is_silent() -> None:
    facts = {"steps": 9, "rows": 32}
    assert not well().examined(EXAMINED, "question", "a set", **facts).found("position-ignored")
    assert not Made().examined(EXAMINED, "question", "a set", **facts).found("position-ignored")
    assert not stuck().examined(EXAMINED, "fine").found("position-ignored")
