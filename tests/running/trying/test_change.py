"""A fix as plain data."""

from __future__ import annotations

from nethook.running.trying.change import Change


def test_a_change_is_the_same_after_a_journey() -> None:
    change = Change("clipping", "exploding-gradient", "limit 1 → 2", {"limit": 2.0}, "eval")
    assert Change.from_json(change.to_json()) == change
    assert Change.from_json(Change().to_json()) == Change()
