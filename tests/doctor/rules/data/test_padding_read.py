"""The rule `padding-read`: when it reports, and when it does not."""

from __future__ import annotations

from nethook.doctor.causes import root_causes
from nethook.doctor.rule import Cause
from tests.doctor.ill import stuck, well
from tests.doctor.synthetic import Made

EXAMINED = "the words matter"


def test_a_run_that_learns_nothing() -> None:
    (finding,) = stuck().examined(EXAMINED, sequences=32, share=0.6).found("padding-read")
    assert finding.severity == "error"
    assert "32 padded sequences" in finding.message
    assert "(60% of the batch)" in finding.message
    assert "with the weights that it has and with others" in finding.message


def test_words_that_other_weights_would_let_through() -> None:
    made = stuck().examined(EXAMINED, "question", sequences=32, share=0.6)
    (finding,) = made.found("padding-read")
    assert finding.severity == "warning"
    assert "and with others" not in finding.message


def test_a_run_that_learns() -> None:
    assert not well().examined(EXAMINED, sequences=32, share=0.6).found("padding-read")


def test_a_loss_of_which_nothing_is_known() -> None:
    assert not Made().examined(EXAMINED, sequences=32, share=0.6).found("padding-read")


def test_what_follows_from_it() -> None:
    made = stuck().examined(EXAMINED, sequences=32, share=0.6)
    made.batch("output_spread", 0.0).batch("input_spread", 0.7).batch("size", 32)
    both = [(Cause.DATA, *made.found(code)) for code in ("input-ignored", "padding-read")]
    (root,) = root_causes(both)
    assert root.code == "padding-read"
    assert [finding.code for finding in root.consequences] == ["input-ignored"]


def test_a_mask_that_is_not_used() -> None:
    (finding,) = stuck().examined("the mask matters", share=0.76).found("padding-read")
    assert finding.severity == "warning"
    assert "(76% of the batch) do move it: padding counts like words" in finding.message
    (finding,) = well().examined("the mask matters", share=0.76).found("padding-read")
    assert finding.severity == "info"
    assert not stuck().examined("the mask matters", "fine").found("padding-read")


def test_less_padding_moves_the_output() -> None:
    for made in (stuck(), well(), Made(200)):
        made.examined("padding adds nothing", "question", "it may", share=0.6, moved=0.2)
        (finding,) = made.found("padding-read")
        assert finding.severity == "info"
        assert "the longest one in its batch. Is that meant?" in finding.message
    assert not stuck().examined("padding adds nothing", "fine", share=0.6).found("padding-read")
