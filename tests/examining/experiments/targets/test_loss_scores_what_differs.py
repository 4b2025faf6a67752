"""The loss scores what differs."""

from __future__ import annotations

import pytest
import torch

from nethook.examining.experiment import Result
from nethook.examining.experiments.targets.loss_scores_what_differs import LossScoresWhatDiffers
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL


def ran(name: str) -> Result:
    torch.manual_seed(0)
    made = ILL[name][1] if name in ILL else HEALTHY[name]
    rehearsal = made().rehearsal()
    reason = LossScoresWhatDiffers().applies(rehearsal)
    assert reason is None, reason
    return LossScoresWhatDiffers().run(rehearsal)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("mask_of_the_loss_inverted", 4), ("only_frames_after_the_end_count", 200)],
)
def test_only_padding_counts(name: str, left_out: int) -> None:
    result = ran(name)
    assert result.outcome == "found"
    assert result.facts["value"] == 0
    assert result.facts["values"] == 1
    assert result.facts["left_out"] >= left_out
    assert 0 < result.facts["share"] < 1


@pytest.mark.parametrize(
    "name",
    [
        "padding_left_out_by_a_mask", "only_what_is_there_is_located",
        "positive_and_unlabelled_places", "answers_count_and_questions_do_not",
        "frames_after_the_end_left_out", "prefix_language_model_masked_by_weights",
    ],
)  # fmt: skip
def test_what_is_left_out_on_purpose(name: str) -> None:
    assert ran(name).outcome in ("fine", "not applicable")


def test_a_loss_of_single_targets() -> None:
    assert LossScoresWhatDiffers().applies(HEALTHY["classifier"]().rehearsal()) is not None
