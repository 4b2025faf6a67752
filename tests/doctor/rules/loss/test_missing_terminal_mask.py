"""The rule `missing-terminal-mask`: when it asks, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import well


def test_it_asks() -> None:
    made = well().examined("episodes end", "question", "the task may have no end", rows=64)
    (finding,) = made.found("missing-terminal-mask")
    assert finding.severity == "info"
    assert finding.first_step == 2
    assert "Is that meant?" in finding.message
    assert "(1 - done)" in finding.fix


def test_it_does_not_ask() -> None:
    assert not well().found("missing-terminal-mask")
    masked = well().examined("episodes end", "fine", rows=64, numbers=2)
    assert not masked.found("missing-terminal-mask")
    few = well().examined("episodes end", "question", rows=4)
    assert not few.found("missing-terminal-mask")
