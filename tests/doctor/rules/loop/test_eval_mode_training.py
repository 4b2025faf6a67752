"""The rule `eval-mode-training`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from tests.doctor.ill import OFF, ON, modes, stuck
from tests.doctor.synthetic import Made


def norm_from(step: int) -> Made:
    made = modes("norm", ON, [step, "train", False], parameters=["n"])
    return made.parameter("n")


def test_three_tenths_of_the_steps_in_eval_mode() -> None:
    (finding,) = norm_from(140).found("eval-mode-training")
    assert finding.first_step == 140
    assert finding.evidence["share of training steps in eval mode"].value == pytest.approx(0.3)
    assert not norm_from(141).found("eval-mode-training")


def test_norms_that_alone_are_in_eval_mode() -> None:
    made = stuck().module("fc", activation="linear")
    made.module("bn", "BatchNorm1d", activation="norm", modes=[OFF], parameters=["n"])
    assert not made.parameter("n").found("eval-mode-training")


def test_a_norm_that_nobody_trains() -> None:
    made = modes("norm", OFF, parameters=["n"])
    assert not made.parameter("n", requires_grad=False).found("eval-mode-training")


def test_a_first_stage_with_a_frozen_part() -> None:
    """Its head is trained alone, and then all of it in training mode to the end."""

    def staged(until: int, *more: list[object]) -> Made:
        made = modes("norm", OFF, [until, "train", True], *more, parameters=["n"])
        return made.parameter("n")

    assert not staged(64).found("eval-mode-training")
    assert not staged(100).found("eval-mode-training")
    assert staged(101).found("eval-mode-training")  # most of the run
    again = staged(64, [100, "train", False])
    assert again.found("eval-mode-training")  # an evaluation that is not undone
