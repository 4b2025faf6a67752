"""The rule `target-shifted`: when it reports."""

from __future__ import annotations

from tests.doctor.synthetic import Made


def test_two_steps_ahead() -> None:
    made = Made().examined("what the target is", what="shifted", ahead=2, lines=["lm.py:9"])
    (finding,) = made.found("target-shifted")
    assert "2 steps after the last thing that it sees" in finding.message
    assert finding.lines == ("lm.py:9",)


def test_the_next_step_is_none() -> None:
    assert (
        not Made().examined("what the target is", what="shifted", ahead=1).found("target-shifted")
    )


def test_a_question_is_none() -> None:
    made = Made().examined("what the target is", "question", what="shifted", ahead=2)
    assert not made.found("target-shifted")
