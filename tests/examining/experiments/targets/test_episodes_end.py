"""Episodes end: what targets of Q-learning are made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.targets.episodes_end import EpisodesEnd
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.steps import step

Loss = Callable[[torch.Tensor], torch.Tensor]

torch.manual_seed(0)
STATE, NEXT = torch.randn(16, 4), torch.randn(16, 4)
REWARD, ACTION = torch.randn(16), torch.randint(3, (16, 1))
DONE = (torch.rand(16) < 0.3).float()
OTHER = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def outcome(target: Callable[[], torch.Tensor], loss: Callable[..., torch.Tensor]) -> str:
    def then(out: torch.Tensor) -> torch.Tensor:
        said = out.gather(1, ACTION).squeeze(1)
        with torch.no_grad():
            wanted = target()
        return loss(said, wanted)

    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    rehearsal = step(model, STATE, then=then).rehearsal()
    reason = EpisodesEnd().applies(rehearsal)
    return "not applicable" if reason else EpisodesEnd().run(rehearsal).outcome


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, lambda a, b: (a - b).pow(2).mean()])
@pytest.mark.parametrize(
    "target",
    [
        lambda: REWARD + 0.99 * OTHER(NEXT).max(1).values,
        lambda: REWARD + 0.99 * OTHER(NEXT).max(1)[0].detach(),
        lambda: 0.9 * OTHER(NEXT).amax(1) + REWARD,
        lambda: REWARD + OTHER(NEXT).gather(1, ACTION).squeeze(1) * 0.9,
    ],
)
def test_a_target_without_an_end(
    target: Callable[[], torch.Tensor], loss: Callable[..., torch.Tensor]
) -> None:
    assert outcome(target, loss) == "question"


def _filled() -> torch.Tensor:
    later = torch.zeros(16)
    later[DONE == 0] = OTHER(NEXT[DONE == 0]).amax(1)
    return REWARD + 0.99 * later


@pytest.mark.parametrize(
    "target",
    [
        lambda: REWARD + 0.99 * (1 - DONE) * OTHER(NEXT).amax(1),
        lambda: torch.where(DONE > 0, REWARD, REWARD + 0.99 * OTHER(NEXT).amax(1)),
        lambda: REWARD + 0.99 * OTHER(NEXT).amax(1).masked_fill(DONE > 0, 0.0),
        lambda: REWARD + 0.99 * OTHER(NEXT).amax(1) * ~(DONE > 0),
        _filled,
        lambda: REWARD,  # returns that were added up before
        lambda: OTHER(STATE).amax(1),  # a teacher
        lambda: 0.5 * REWARD + 1.0,
    ],
    ids=range(8),
)
def test_targets_with_an_end_and_of_another_kind(target: Callable[[], torch.Tensor]) -> None:
    assert outcome(target, F.smooth_l1_loss) != "question"


def test_targets_of_other_losses() -> None:
    for name in ("classifier", "language_model", "autoencoder"):
        rehearsal = HEALTHY[name]().rehearsal()
        reason = EpisodesEnd().applies(rehearsal)
        assert reason or EpisodesEnd().run(rehearsal).outcome == "not applicable"
