"""The rule `target-is-input`: when it reports, and when it asks."""

from __future__ import annotations

from tests.doctor.synthetic import Made

NAME = "what the target is"


def test_a_place_of_the_input() -> None:
    made = Made().examined(NAME, what="input", place=23, places=24, samples=32)
    (finding,) = made.found("target-is-input")
    assert "at place 23 of 24" in finding.message
    assert finding.severity == "error"


def test_a_sequence_that_is_copied() -> None:
    (finding,) = Made().examined(NAME, what="input", shift=0).found("target-is-input")
    assert "it learns to copy" in finding.message


def test_it_asks_where_remembering_may_be_the_task() -> None:
    made = Made().examined(
        NAME,
        "question",
        "the task may be to remember it",
        what="input",
        place=0,
        places=9,
        samples=9,
    )
    (finding,) = made.found("target-is-input")
    assert finding.severity == "info"
    assert "Is that meant? The task may be to remember it." in finding.message


def test_few_samples_are_not_enough() -> None:
    made = Made().examined(NAME, what="input", place=0, places=9, samples=4)
    assert not made.found("target-is-input")
