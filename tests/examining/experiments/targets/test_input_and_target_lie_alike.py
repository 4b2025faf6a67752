"""Input and target lie alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiment import Result
from nethook.examining.experiments.targets.input_and_target_lie_alike import InputAndTargetLieAlike
from tests.examining.experiments.healthy import HEALTHY, shapes
from tests.examining.experiments.ill import ILL
from tests.examining.experiments.steps import Step, step


def ran(one: Step) -> Result:
    rehearsal = one.rehearsal()
    experiment = InputAndTargetLieAlike()
    reason = experiment.applies(rehearsal)
    assert reason is None, reason
    return experiment.run(rehearsal)


@pytest.mark.parametrize(
    ("name", "how", "each"),
    [
        ("masks_with_width_first", "transposed", False),
        ("masks_upside_down", "upside down", False),
        ("flips_by_two_throws_of_the_coin", "mirrored left to right", True),
        ("classes_turned_against_their_picture", "turned by half a circle", False),
    ],
)
def test_how_targets_lie(name: str, how: str, each: bool) -> None:
    result = ran(ILL[name][1]())
    assert (result.outcome, result.facts["how"], result.facts["each"]) == ("found", how, each)
    assert result.facts["samples"] in (16, 32)


@pytest.mark.parametrize(
    "name",
    [
        "pictures_and_masks_mirrored_together", "masks_of_noise", "symmetric_pictures",
        "depth_that_grows_downwards", "maps_with_channels_last", "pictures_denoised",
        "masks_that_are_mostly_empty", "maps_of_other_pictures",
    ],
)  # fmt: skip
def test_targets_that_lie_as_they_should(name: str) -> None:
    torch.manual_seed(0)
    result = ran(HEALTHY[name]())
    assert (result.outcome, result.facts["how"]) == ("fine", "")


def test_the_picture_itself_and_what_has_no_places() -> None:
    pictures, _ = shapes()
    model = nn.Conv2d(1, 1, 3, padding=1)
    rebuilt = step(model, pictures, then=lambda out: F.mse_loss(out, pictures), loader=16)
    assert ran(rebuilt).outcome == "not applicable"
    labels = torch.randint(3, (16,))
    flat = nn.Sequential(nn.Flatten(), nn.Linear(144, 3))
    classified = step(flat, pictures, then=lambda out: F.cross_entropy(out, labels))
    assert InputAndTargetLieAlike().applies(classified.rehearsal()) is not None
