"""The rule `term-without-gradient`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import well

EXPERIMENT = "every term has a gradient"


def test_a_number_and_a_tensor() -> None:
    for how in ("a plain number", "a tensor without a gradient"):
        made = well().examined(EXPERIMENT, how=how, lines=["train.py:9"])
        (finding,) = made.found("term-without-gradient")
        assert finding.severity == "warning"
        assert finding.message.startswith(f"{how} is added to the loss")
        assert finding.lines == ("train.py:9",)


def test_a_loss_of_constants() -> None:
    how = "a loss of tensors without a gradient"
    made = well().examined(EXPERIMENT, how=how, lines=["train.py:9"])
    (finding,) = made.found("term-without-gradient")
    assert "of which none was computed by a network that learns here" in finding.message
    assert "in the place of its teacher's" in finding.fix


def test_it_is_silent() -> None:
    assert not well().examined(EXPERIMENT, "fine", sums=2).found("term-without-gradient")
    assert not well().found("term-without-gradient")
