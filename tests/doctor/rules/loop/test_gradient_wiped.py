"""The rule `gradient-wiped`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import micro_batches
from tests.doctor.synthetic import Made


def wiped(passes: float, empty: float) -> Made:
    return Made().loop("wiped_backwards", passes).loop("empty_gradients", empty)


def test_steps_that_find_nothing() -> None:
    (finding,) = wiped(1, 0.9).found("gradient-wiped")
    assert finding.message.startswith("the gradients of 200 of 200 backward passes were cleared")
    assert "90% of its parameters had none" in finding.message
    assert not wiped(1, 0.89).found("gradient-wiped")


def test_half_of_the_passes() -> None:
    assert wiped(0.5, 1).found("gradient-wiped")
    assert not wiped(0.49, 1).found("gradient-wiped")


def test_two_passes_say_nothing() -> None:
    assert not wiped(1, 1).found("gradient-wiped", until=1)
    assert wiped(1, 1).found("gradient-wiped", until=2)


def test_micro_batches_that_are_lost() -> None:
    (finding,) = micro_batches().found("gradient-wiped")
    assert "of 4 backward passes per step the gradients of 3 are cleared" in finding.message
    assert not micro_batches().without("event.wiped-passes").found("gradient-wiped")
