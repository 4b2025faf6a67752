"""What is kept of a trial."""

from __future__ import annotations

from nethook.running.trying.change import Change
from nethook.running.trying.comparing import Comparison, Pair
from nethook.running.trying.tried import Tried

CHANGE = Change("learning_rate", "diverged", "learning rate 1 → 0.1", judged_by="train")


def test_numbers_are_kept_with_the_change() -> None:
    compared = Comparison(200, Pair(2.0, 1.0, 1), None, helped=True)
    assert Tried.of(CHANGE, compared).to_dict() == {
        "code": "diverged",
        "change": "learning rate 1 → 0.1",
        "steps": 200,
        "train": (2.0, 1.0),
        "eval": None,
        "judged_by": "train",
        "helped": True,
        "why": "",
    }


def test_a_reason_is_kept_where_there_are_no_numbers() -> None:
    tried = Tried.not_judged(CHANGE, "it was stopped")
    assert (tried.helped, tried.why, tried.train) == (None, "it was stopped", None)
