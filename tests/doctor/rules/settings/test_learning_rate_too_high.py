"""The rule `learning-rate-too-high`: when it reports, and when it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.doctor.ill import CLASSES, bad, lost, stuck
from tests.doctor.synthetic import Made, falling, flat


def test_updates_of_three_percent_while_the_loss_rises() -> None:
    rises = np.geomspace(2.3, 900, 200)
    (finding,) = (
        bad(rises).loop("update_ratio", 0.031).rate(*[1.0] * 200).found("learning-rate-too-high")
    )
    assert finding.evidence["update by weights"].threshold == 0.03
    assert "by 3.1% of their size" in finding.message
    assert "to about 0.0968," in finding.fix
    assert not bad(rises).loop("update_ratio", 0.029).found("learning-rate-too-high")


def test_updates_of_a_tenth_while_the_loss_stays() -> None:
    assert stuck().loop("update_ratio", 0.11).found("learning-rate-too-high")
    assert not stuck().loop("update_ratio", 0.09).found("learning-rate-too-high")


def test_a_rate_that_spoils_a_run_in_two_steps() -> None:
    losses = np.r_[2.3, 1e30, np.full(30, np.nan)]
    made = Made(32).loss(losses).loop("update_ratio", np.r_[4e5, np.full(31, np.nan)])
    (finding,) = made.found("learning-rate-too-high")
    assert "by 4e+05 times their size" in finding.message
    assert "the loss began at 2.3 and is not finite at the end" in finding.message


def test_a_first_step_larger_than_the_weights_is_the_cause_of_what_follows() -> None:
    leap = np.concatenate(([2.35, 50.0, 23.0, 18.0, 13.0, 9.0, 6.0], np.full(193, 2.2)))
    leap += np.random.default_rng(0).normal(0, 0.05, 200)
    ratio = np.concatenate(([3.0, 0.66, 0.37, 0.26], np.full(196, 0.004)))
    assert [f.code for f in bad(leap).loop("update_ratio", ratio).found("learning-rate-too-high")]
    calm = np.linspace(2.35, 2.0, 200) + 0.01 * np.sin(np.arange(200))  # no leap
    assert not bad(calm).loop("update_ratio", ratio).found("learning-rate-too-high")
    learns = np.concatenate((leap[:7], np.geomspace(2.2, 0.05, 193)))
    assert not bad(learns).loop("update_ratio", ratio).found("learning-rate-too-high")


def test_a_rate_that_was_warmed_up_until_the_loss_leapt() -> None:
    """Small steps at first and again at the end, when the network is dead."""
    course = np.r_[flat(20, 2.3), flat(40, 4.5), flat(140, 2.3)]
    ratio = np.r_[np.full(15, 0.01), np.full(25, 0.16), np.full(160, 0.004)]
    (finding,) = bad(course).loop("update_ratio", ratio).found("learning-rate-too-high")
    assert finding.first_step == 15
    assert finding.evidence["update by weights"].value == pytest.approx(0.16)
    # Steps of the same size, and nothing that followed.
    assert not bad(flat(200, 2.3)).loop("update_ratio", ratio).found("learning-rate-too-high")


def test_a_small_leap_counts_where_nothing_is_learnt_since() -> None:
    """Ten classes: one answer for all would score 2.303."""
    course = np.r_[np.full(3, 2.4), np.full(7, 2.6), np.full(190, 2.31)] + flat(200, 0.0, 0.01)
    ratio = np.r_[np.geomspace(0.4, 0.05, 10), np.full(190, 0.01)]
    (finding,) = bad(course).loop("update_ratio", ratio).found("learning-rate-too-high")
    assert "began at 2.4, rose to 2.6" in finding.message
    assert finding.first_step == 0
    small = bad(course).loop("update_ratio", np.minimum(ratio, 0.05))
    assert not small.found("learning-rate-too-high")
    learns = np.r_[course[:10], np.linspace(2.5, 1.9, 190)]
    assert not bad(learns).loop("update_ratio", ratio).found("learning-rate-too-high")


def test_a_nan_of_one_operation_is_not_the_fault_of_the_steps() -> None:
    falls = np.r_[np.geomspace(9.0, 0.5, 20), np.full(180, np.nan)]
    ratio = np.r_[np.geomspace(0.4, 0.05, 20), np.full(180, np.nan)]
    assert not bad(falls).loop("update_ratio", ratio).found("learning-rate-too-high")
    rises = np.r_[np.geomspace(2.0, 1e6, 20), np.full(180, np.nan)]
    assert bad(rises).loop("update_ratio", ratio).found("learning-rate-too-high")


def test_where_a_run_had_learnt_another_rule_says_what_changed() -> None:
    made = lost(*[0.01] * 118, *[1.0] * 82)
    made.loop("update_ratio", np.r_[np.full(118, 1e-3), np.full(82, 0.4)])
    assert made.found("diverged")
    assert not made.found("learning-rate-too-high")


def test_what_one_batch_shows_is_said_where_it_agrees() -> None:
    facts = {
        "steps": 15, "before": 2.3, "optimizer": "SGD", "rate": 1.0, "adam": 1.1, "adam_rate": 1e-3
    }  # fmt: skip
    rises = np.geomspace(2.3, 900, 200)
    for after, said in ((None, True), (75.0, True), (1.0, False)):
        made = bad(rises).loop("update_ratio", 0.031).rate(*[1.0] * 200)
        made.examined("it can learn at all", "fine", after=after, **facts)
        (finding,) = made.found("learning-rate-too-high")
        assert finding.message.endswith("and to 1.1 with Adam (lr=0.001).") is said
        assert ("after as many with Adam (lr=0.001)" in finding.evidence) is said


def thrown(*first: float, ratio: float = 4.6, noise: float = 0.02) -> Made:
    """A run that learns, with these losses and updates of this size in its first steps."""
    loss = falling(200, 2.3, 1.4, noise)
    loss[: len(first)] = first
    updates = np.full(200, 0.01)
    updates[:2] = ratio
    return Made().loss(loss).record(**CLASSES).loop("update_ratio", updates)


def test_first_steps_that_replace_the_weights_are_a_note_where_the_run_learns() -> None:
    (finding,) = thrown(2.3, 7.2, 6.1, 4.0).found("learning-rate-too-high")
    assert finding.severity == "info"
    assert "4.6 times their size, and the loss leapt from 2.3 to 7.2" in finding.message


def test_large_first_steps_that_do_no_harm() -> None:
    # Weights that begin at zero, and a loss that falls from the first step on.
    assert not thrown(2.3, 2.2, 2.1).found("learning-rate-too-high")
    # A loss that leaps with steps of a usual size: a hard batch.
    assert not thrown(2.3, 7.2, ratio=0.02).found("learning-rate-too-high")
    # One sample per step: losses differ that much at any time.
    assert not thrown(2.3, 3.6, noise=0.3).found("learning-rate-too-high")


def by_hand(values: np.ndarray[Any, Any]) -> Made:
    return Made(len(values)).loop("optimizer_steps", 0).loss(values).record(kind="mse")


def test_updates_by_hand_that_go_too_far() -> None:
    (finding,) = by_hand(np.geomspace(1.0, 1e30, 60)).found("learning-rate-too-high")
    assert finding.severity == "error"
    assert "each of 59 steps in a row" in finding.message
    assert not by_hand(np.linspace(1.0, 3.0, 60)).found("learning-rate-too-high")
    assert not by_hand(np.geomspace(1.0, 1e-3, 60)).found("learning-rate-too-high")


def test_updates_by_hand_that_are_as_large_as_the_weights() -> None:
    """Where no optimizer tells its rate, none is named: neither "nan" nor a factor of it."""
    made = by_hand(np.full(60, 2.3)).loop("update_ratio", 0.9)
    (finding,) = made.found("learning-rate-too-high")
    assert finding.severity == "error"
    assert finding.message.endswith("the loss began at 2.3 and ends at 2.3.")
    assert finding.fix.startswith("Lower the learning rate, to about 1/300 of what it is")
    assert not by_hand(np.full(60, 2.3)).loop("update_ratio", 0.01).found("learning-rate-too-high")


def test_first_steps_larger_than_the_weights_where_no_loss_tells() -> None:
    two = Made().loss(flat(200)).loss(flat(200), "train.py:20").record(floored=False)
    two.loop("update_ratio", np.r_[1.4, 0.6, 0.3, np.full(197, 0.02)]).rate(*[0.3] * 200)
    (finding,) = two.found("learning-rate-too-high")
    assert finding.severity == "info"
    assert "1.4 times their size" in finding.message
    two.loop("update_ratio", np.r_[0.9, 0.6, 0.3, np.full(197, 0.02)])
    assert not two.found("learning-rate-too-high")


def collapsed(
    rate: float = 0.01, update: float = 0.06, layers: int = 9, kind: str = "Adam", said: int = 160
) -> Made:
    """A network that gives one answer, behind first steps of this size."""
    counts = [said, *[(160 - said) // 9] * 9]
    made = stuck().rate(*[rate] * 200).record(*range(6), argmax_counts=counts, **CLASSES)
    made.loop("update_ratio", np.r_[np.full(10, update), np.full(190, 1e-3)])
    made.event("groups", 0, optimizer="0", type=kind, groups=[{"lr": rate}])
    for at in range(layers):
        made.parameter(f"fc{at}.weight")
    return made


def test_a_deep_network_that_comes_to_one_answer_under_adam() -> None:
    (finding,) = collapsed().found("learning-rate-too-high")
    assert finding.severity == "warning"
    assert "the first steps of Adam changed the weights by 6.0%" in finding.message
    assert "0.000333" in finding.fix


@pytest.mark.parametrize(
    "made",
    [
        collapsed(rate=1e-3),
        collapsed(update=0.02),
        collapsed(layers=4),  # a shallow one bears such a rate
        collapsed(kind="SGD"),
        collapsed(said=70),  # it tells inputs apart
    ],
)
def test_one_answer_that_has_other_causes(made: Made) -> None:
    assert not made.found("learning-rate-too-high")
