"""The rule `unscaled-accumulation`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import stuck, well
from tests.doctor.synthetic import Made, falling


def test_two_passes_per_step() -> None:
    (finding,) = well().loop("backwards", 2).found("unscaled-accumulation")
    assert finding.severity == "info"
    assert finding.message.startswith("2 backward passes per step add up mean losses")
    assert finding.fix.startswith("Write (loss / 2).backward()")
    assert not well().loop("backwards", 1).found("unscaled-accumulation")


def test_a_loss_that_does_not_fall() -> None:
    assert stuck().loop("backwards", 2).found("unscaled-accumulation")[0].severity == "warning"


def test_two_losses_are_two_terms() -> None:
    made = well().loop("backwards", 2).record(name="train.py:20")
    assert not made.found("unscaled-accumulation")


def test_sums_are_not_means() -> None:
    made = Made().loss(falling(200)).loop("backwards", 2).record(reduction="sum")
    assert not made.found("unscaled-accumulation")


def test_several_nets_with_optimizers_of_their_own() -> None:
    made = well().loop("backwards", 4).loop("optimizer_steps", 4)
    assert not made.found("unscaled-accumulation")
    accumulates = well().loop("backwards", 16).loop("optimizer_steps", 4)
    assert accumulates.found("unscaled-accumulation")[0].message.startswith("4 backward passes")


def test_what_is_cleared_before_the_step_does_not_add_up() -> None:
    made = well().loop("backwards", 2).loop("wiped_backwards", 1)
    assert not made.found("unscaled-accumulation")
