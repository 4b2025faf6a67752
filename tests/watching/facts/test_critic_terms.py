"""Whether the loss of a policy has a gradient for its critic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

from nethook.watching.facts.critic_terms import has_critic

torch.manual_seed(0)
X, REWARD, ACTION = torch.randn(8, 4), torch.randn(8), torch.randint(3, (8,))
ACTOR, CRITIC, GATE = (
    nn.Linear(4, 3),
    nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 1)),
    nn.Linear(4, 1),
)


def log_prob() -> torch.Tensor:
    return Categorical(logits=ACTOR(X)).log_prob(ACTION)


def value() -> torch.Tensor:
    return CRITIC(X).squeeze(1)


WRONG: dict[str, Callable[[], torch.Tensor]] = {
    "advantage": lambda: -(log_prob() * (REWARD - value())).mean(),
    "with its own loss": lambda: (
        (-log_prob() * (REWARD - value())).sum() + 0.5 * F.mse_loss(value(), REWARD)
    ),
    "normed": lambda: (
        -((REWARD - value()) / 2.0 * ACTOR(X).log_softmax(1)[range(8), ACTION]).mean()
    ),
    "cross entropy": lambda: (
        F.cross_entropy(ACTOR(X), ACTION, reduction="none") * (REWARD - value())
    ).mean(),
    "step by step": lambda: (
        -(torch.stack(list(log_prob())) * (REWARD - torch.stack(list(value())))).sum()
    ),
}
RIGHT: dict[str, Callable[[], torch.Tensor]] = {
    "detached": lambda: (
        -(log_prob() * (REWARD - value()).detach()).mean() + F.mse_loss(value(), REWARD)
    ),
    "value in no_grad": lambda: -(log_prob() * (REWARD - value().detach())).mean(),
    "reward alone": lambda: -(log_prob() * (REWARD - REWARD.mean())).mean(),
    "soft actor-critic": lambda: (0.2 * log_prob() - value()).mean(),
    "focal": lambda: (
        (1 - log_prob().exp()) ** 2 * F.cross_entropy(ACTOR(X), ACTION, reduction="none")
    ).mean(),
    "samples that are weighed": lambda: (GATE(X).sigmoid().squeeze(1) * -log_prob()).mean(),
    "a learned temperature": lambda: (
        F.cross_entropy(ACTOR(X), ACTION, reduction="none") * (-GATE(X).squeeze(1)).exp()
    ).mean(),
    "experts": lambda: -(ACTOR(X).log_softmax(1) * GATE(X).softmax(0)).sum(1).mean(),
    "a margin": lambda: ((REWARD - value()) * (REWARD - value())).mean(),
    "entropy": lambda: (ACTOR(X).softmax(1) * ACTOR(X).log_softmax(1)).sum(1).mean(),
    "scores of pairs": lambda: (ACTOR(X).log_softmax(1) * (ACTOR(X) - REWARD[:, None])).mean(),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_critic_that_the_policy_moves(name: str) -> None:
    assert has_critic([WRONG[name]()])


@pytest.mark.parametrize("name", RIGHT)
def test_losses_that_move_no_critic(name: str) -> None:
    assert not has_critic([RIGHT[name]()])


def test_what_has_no_graph() -> None:
    assert not has_critic([torch.ones(())])
