"""Answers fit their samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.network.answers_fit_samples import AnswersFitSamples
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.steps import Step, step

X = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
Y = X @ torch.randn(4, 2, generator=torch.Generator().manual_seed(1))


def trained(then: Callable[[Any], torch.Tensor], steps: int = 200) -> Step:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        then(model(X)).backward()
        optimizer.step()
    return step(model, X, then=then, loader=16)


def facts(one: Step) -> dict[str, Any]:
    rehearsal = one.rehearsal()
    assert AnswersFitSamples().applies(rehearsal) is None
    return dict(AnswersFitSamples().run(rehearsal).facts)


@pytest.mark.parametrize(
    "then",
    [
        lambda out: F.mse_loss(out, Y),
        lambda out: ((out - Y) ** 2).sum(1).mean(),
        lambda out: F.cross_entropy(out, (Y[:, 0] > 0).long()),
        lambda out: F.smooth_l1_loss(out, Y) + 0.01 * out.square().mean(),
    ],
)
def test_what_was_learnt(then: Callable[[Any], torch.Tensor]) -> None:
    told = facts(trained(then))
    assert told["own"] < 0.5 * told["others"]
    assert told["samples"] == 16
    assert not told["alike"]


def test_one_answer_for_all() -> None:
    """Answers and targets have nothing to do with each other."""
    shuffled = Y[torch.randperm(16, generator=torch.Generator().manual_seed(2))]
    model = nn.Sequential(nn.Linear(4, 2))
    nn.init.zeros_(model[0].weight)
    told = facts(step(model, X, then=lambda out: F.mse_loss(out, shuffled), loader=16))
    assert told["own"] == told["others"]
    assert told["alike"]


@pytest.mark.parametrize("name", ["contrastive_pairs", "critic_without_targets", "speech_with_ctc",
                                  "simclr_two_views", "batch_hard_triplets"])  # fmt: skip
def test_losses_without_a_target_for_each_sample(name: str) -> None:
    torch.manual_seed(0)
    rehearsal = HEALTHY[name]().rehearsal()
    experiment = AnswersFitSamples()
    reason = experiment.applies(rehearsal)
    assert reason is not None or experiment.run(rehearsal).outcome == "not applicable"
