"""Healthy steps whose targets are computed, whose losses take signs, whose choices are narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.examining.experiments.healthy import classes, healthy, mlp
from tests.examining.experiments.steps import Calls, Step, step

N = 16


# -- targets of what comes later ----------------------------------------------------------------


def values(target: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]) -> Step:
    """A step of Q-learning; a target is made of rewards, ends, and what another network says."""
    action, reward, later = torch.randint(3, (N, 1)), torch.randn(N), torch.randn(N, 4)
    done, other = (torch.rand(N) < 0.3).float(), mlp(4, 8, 3)

    def then(out: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            wanted = target(reward, done, other(later))
        return F.smooth_l1_loss(out.gather(1, action).squeeze(1), wanted)

    return step(mlp(4, 8, 3), torch.randn(N, 4), then=then)


@healthy
def episodes_end_by_a_factor() -> Step:
    return values(lambda reward, done, q: reward + 0.99 * (1 - done) * q.amax(1))


@healthy
def episodes_end_by_a_choice() -> Step:
    return values(lambda reward, done, q: torch.where(done > 0, reward, reward + 0.9 * q.amax(1)))


@healthy
def episodes_end_by_a_filled_mask() -> Step:
    return values(lambda reward, done, q: reward + 0.9 * q.amax(1).masked_fill(done > 0, 0.0))


@healthy
def a_discount_for_each_row() -> Step:
    """It is zero where an episode ends, as the environment says."""
    return values(lambda reward, done, q: reward + 0.99 * ((1 - done) * q.amax(1)))


@healthy
def episodes_end_by_writing_zeros() -> Step:
    def target(reward: torch.Tensor, done: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        best = q.amax(1)
        best[done > 0] = 0.0
        return reward + 0.9 * best

    return values(target)


@healthy
def values_with_an_entropy_for_each_row() -> Step:
    def target(reward: torch.Tensor, done: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        chance = q.softmax(1)
        soft = (chance * (q - 0.2 * chance.log())).sum(1)
        return reward + 0.99 * (1 - done) * soft

    return values(target)


# -- losses of signs ----------------------------------------------------------------------------

SIGNS = torch.tensor([-1.0, 1.0] * (N // 2))


@healthy
def pairs_pulled_and_pushed() -> Step:
    other = torch.randn(N, 3)
    return step(
        mlp(8, 3), torch.randn(N, 8), then=lambda out: F.cosine_embedding_loss(out, other, SIGNS)
    )


@healthy
def pairs_that_all_belong_together() -> Step:
    other, ones = torch.randn(N, 3), torch.ones(N)
    return step(
        mlp(8, 3), torch.randn(N, 8), then=lambda out: F.cosine_embedding_loss(out, other, ones)
    )


@healthy
def rankings_of_pairs() -> Step:
    return step(
        mlp(8, 2), torch.randn(N, 8),
        then=lambda out: F.margin_ranking_loss(out[:, 0], out[:, 1], SIGNS, margin=0.1),
    )  # fmt: skip


@healthy
def hinge_of_signs() -> Step:
    return step(mlp(8, 1), torch.randn(N, 8), then=lambda out: F.relu(1 - SIGNS * out[:, 0]).mean())


@healthy
def soft_margin_of_signs() -> Step:
    return step(mlp(8, 1), torch.randn(N, 8), then=lambda out: F.soft_margin_loss(out[:, 0], SIGNS))


@healthy
def hinge_of_zeros_made_signs() -> Step:
    y = (SIGNS > 0).float()
    return step(
        mlp(8, 1), torch.randn(N, 8), then=lambda out: F.relu(1 - (2 * y - 1) * out[:, 0]).mean()
    )


@healthy
def hinge_of_a_critic() -> Step:
    real = torch.randn(N, 8)
    return step(
        mlp(8, 1), torch.cat([real, real + 1]),
        then=lambda out: F.relu(1 - out[:N]).mean() + F.relu(1 + out[N:]).mean(),
    )  # fmt: skip


# -- a softmax with little to choose from -------------------------------------------------------


def pooled(forward: Callable[[Any, torch.Tensor], torch.Tensor], steps: int = 6) -> Step:
    y = classes(N)
    model = Calls(
        forward, score=nn.Linear(8, 1), scores=nn.Linear(8, 4), out=nn.Linear(8, 3),
        many=nn.Linear(32, 3),
    )  # fmt: skip
    return step(model, torch.randn(N, steps, 8), then=lambda out: F.cross_entropy(out, y), loader=N)


@healthy
def attention_over_steps() -> Step:
    return pooled(lambda self, x: self.out((self.score(x).softmax(1) * x).sum(1)))


@healthy
def attention_of_several_heads_over_one_step() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        weight = self.scores(x).softmax(1)
        return self.many(torch.einsum("bth,btd->bhd", weight, x).flatten(1))

    return pooled(forward, steps=1)


@healthy
def attention_over_one_step() -> Step:
    """A batch of sequences that have one step each: asked, no fault."""
    return pooled(lambda self, x: self.out((self.score(x).softmax(1) * x).sum(1)), steps=1)


@healthy
def queries_of_one_key() -> Step:
    """What is attended to is one summary, in this batch."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        one = x.mean(1, keepdim=True)
        return self.out(((x @ one.transpose(1, 2)).softmax(2) @ one).mean(1))

    return pooled(forward)


@healthy
def gate_of_parts() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        gate = self.scores(x.mean(1)).softmax(1)
        return self.out(x.mean(1) * gate.sum(1, keepdim=True))

    return pooled(forward)


@healthy
def scores_without_their_last_axis() -> Step:
    return pooled(
        lambda self, x: self.out((self.score(x).squeeze(2).softmax(1)[..., None] * x).sum(1))
    )


# -- axes that are split, joined and shifted on purpose -----------------------------------------


@healthy
def pictures_cut_into_patches() -> Step:
    y = classes(N)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        patches = x.view(N, 3, 2, 4, 2, 4).permute(0, 2, 4, 1, 3, 5).reshape(N, 4, 48)
        return self.out(patches).mean(1)

    return step(
        Calls(forward, out=nn.Linear(48, 3)), torch.randn(N, 3, 8, 8),
        then=lambda out: F.cross_entropy(out, y), loader=N,
    )  # fmt: skip


@healthy
def channels_shuffled_between_groups() -> Step:
    y = classes(N)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.conv(x)
        h = h.view(N, 2, 6, 6, 6).transpose(1, 2).reshape(N, 12, 6, 6)
        return self.out(self.next(h).mean((2, 3)))

    return step(
        Calls(forward, conv=nn.Conv2d(4, 12, 1), next=nn.Conv2d(12, 12, 1, groups=2),
              out=nn.Linear(12, 3)),
        torch.randn(N, 4, 6, 6), then=lambda out: F.cross_entropy(out, y), loader=N,
    )  # fmt: skip


@healthy
def positions_shifted_against_each_other() -> Step:
    """Scores of distances, as of Transformer-XL: (steps, distances + 1) viewed as its transpose."""
    y = classes(N)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        scores = F.pad(x @ self.near.weight.T, (1, 0))
        shifted = scores.view(N, 8, 7)[:, 1:].reshape(N, 7, 7)
        return self.out((shifted.softmax(-1) @ x).mean(1))

    return step(
        Calls(forward, near=nn.Linear(8, 7), out=nn.Linear(8, 3)), torch.randn(N, 7, 8),
        then=lambda out: F.cross_entropy(out, y), loader=N,
    )  # fmt: skip


@healthy
def heads_of_an_attention() -> Step:
    y = classes(N)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).view(N, 6, 3, 2, 4).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(N, 6, 8)
        return self.out(h.mean(1))

    return step(
        Calls(forward, qkv=nn.Linear(8, 24), out=nn.Linear(8, 3)), torch.randn(N, 6, 8),
        then=lambda out: F.cross_entropy(out, y), loader=N,
    )  # fmt: skip


@healthy
def frames_stacked_by_two() -> Step:
    """Half as many steps with twice as many numbers: asked at most, no fault."""
    y = classes(N)
    return step(
        Calls(lambda self, x: self.out(x.reshape(N, 10, 12)).mean(1), out=nn.Linear(12, 3)),
        torch.randn(N, 20, 6), then=lambda out: F.cross_entropy(out, y), loader=N,
    )  # fmt: skip
