"""The rule `softmax-over-one`: when it warns, when it asks, and when it says nothing."""

from __future__ import annotations

from tests.doctor.ill import stuck, well

EXPERIMENT = "a softmax has a choice"


def test_it_warns() -> None:
    for run in (stuck, well):
        made = run().examined(EXPERIMENT, given=[32, 9, 1], dim=2, lines=["train.py:9"])
        (finding,) = made.found("softmax-over-one")
        assert finding.severity == "warning"
        assert "axis 2 of scores of shape (32, 9, 1)" in finding.message
        assert finding.lines == ("train.py:9",)


def test_one_output_is_asked_about_where_the_run_does_its_job() -> None:
    (finding,) = (
        well().examined(EXPERIMENT, "question", given=[32, 1], dim=1).found("softmax-over-one")
    )
    assert finding.severity == "info"
    (finding,) = (
        stuck().examined(EXPERIMENT, "question", given=[32, 1], dim=1).found("softmax-over-one")
    )
    assert finding.severity == "warning"


def test_it_is_silent() -> None:
    assert not well().examined(EXPERIMENT, "fine", calls=2).found("softmax-over-one")
    assert not well().found("softmax-over-one")
