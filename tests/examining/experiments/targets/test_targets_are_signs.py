"""Targets are signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.targets.targets_are_signs import TargetsAreSigns
from tests.examining.experiments.steps import step

ZEROS = torch.tensor([0.0, 1.0] * 6)
SIGNS = 2 * ZEROS - 1
ONES = torch.ones(12)
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LOSSES: dict[str, Loss] = {
    "cosine": lambda out, y: F.cosine_embedding_loss(out, out.roll(1, 0), y),
    "hinge": lambda out, y: F.hinge_embedding_loss(out.norm(dim=1), y),
    "ranking": lambda out, y: F.margin_ranking_loss(out[:, 0], out[:, 1], y),
    "soft": lambda out, y: F.soft_margin_loss(out[:, 0], y),
}


def of(then: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    made = step(nn.Linear(8, 4), torch.randn(12, 8), then=then).rehearsal()
    experiment = TargetsAreSigns()
    reason = experiment.applies(made)
    return reason if reason is not None else experiment.run(made)


@pytest.mark.parametrize("name", LOSSES)
def test_zeros_in_the_place_of_signs(name: str) -> None:
    result = of(lambda out: LOSSES[name](out, ZEROS))
    assert result.outcome == "found"
    assert result.facts["share"] == 0.5
    assert result.facts["lines"][0].startswith("test_targets_are_signs.py:")


@pytest.mark.parametrize("name", LOSSES)
def test_signs_and_one_sign_alone(name: str) -> None:
    assert of(lambda out: LOSSES[name](out, SIGNS)).outcome == "fine"
    assert of(lambda out: LOSSES[name](out, torch.ones(12))).outcome == "fine"
    assert of(lambda out: LOSSES[name](out, SIGNS * (SIGNS > 0) - 1)).outcome == "fine"  # -1 and 0


HINGES: dict[str, Loss] = {
    "clamp": lambda out, y: torch.clamp(1 - y[:, None] * out[:, :1], min=0).mean(dim=-1).mean(),
    "relu": lambda out, y: F.relu(1 - out[:, 0] * y).mean(),
    "clamp_min": lambda out, y: (0.5 - y.view(-1, 1) * out[:, :1]).clamp_min(0.0).sum(),
}


@pytest.mark.parametrize("name", HINGES)
def test_a_hinge_that_is_written_by_hand(name: str) -> None:
    result = of(lambda out: HINGES[name](out, ZEROS))
    assert result.outcome == "found"
    assert result.facts["kind"] == "a hinge, max(0, 1 - target * output)"
    assert result.facts["share"] == 0.5
    assert of(lambda out: HINGES[name](out, SIGNS)).outcome == "fine"
    assert of(lambda out: HINGES[name](out, ONES)).outcome == "fine"


def told_beside(out: torch.Tensor) -> torch.Tensor:
    """The share of right answers, of targets that are signs in the loss."""
    assert 0 <= ((out[:, 0] > 0) == (SIGNS > 0)).float().mean().item() <= 1
    return F.relu(1 - SIGNS * out[:, 0]).mean()


LEFT_ALONE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    # An adversary's hinge has no target.
    "adversary": lambda out: F.relu(1 - out).mean() + F.relu(1 + out).mean(),
    # The mask is counted: places that it hides are no samples of a class.
    "mask": lambda out: F.relu(1 - ZEROS * out[:, 0]).sum() / ZEROS.sum(),
    "weight": lambda out: (ZEROS * F.relu(1 - out[:, 0])).mean(),
    # Capsules: what is there, and what is not, each with a margin of its own.
    "capsules": lambda out: (
        ZEROS * F.relu(0.9 - out[:, 0]) ** 2 + 0.5 * (1 - ZEROS) * F.relu(out[:, 0] - 0.1) ** 2
    ).mean(),
    "contrastive": lambda out: (
        ZEROS * out[:, 0] ** 2 + (1 - ZEROS) * F.relu(1 - out[:, 0]) ** 2
    ).mean(),
    "signs made of zeros": lambda out: F.relu(1 - (2 * ZEROS - 1) * out[:, 0]).mean(),
    "told beside": told_beside,
    "not cut": lambda out: (1 - ZEROS * out[:, 0]).square().mean(),
    "cut elsewhere": lambda out: (1 - ZEROS * out[:, 0]).clamp(-1, 1).mean(),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_looks_like_a_hinge_on_zeros(name: str) -> None:
    result = of(LEFT_ALONE[name])
    assert isinstance(result, str) or result.outcome == "fine"


def test_other_losses_take_zeros() -> None:
    reason = of(lambda out: F.binary_cross_entropy_with_logits(out[:, 0], ZEROS))
    assert reason == "no loss takes signs"
