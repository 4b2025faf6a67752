"""A policy that is to order cities has a critic on the same features; its value is not detached in the policy loss, which pulls the critic away.

expect: critic-in-policy-loss
or: not-learning
line: advantage = reward - value
source: https://github.com/astariul/encode-attend-navigate-pytorch/pull/3
metric: squared error of the critic relative to the spread of rewards, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Linear(2, dim)
        self.attend = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, x):
        h = self.emb(x)
        h = h + self.attend(h, h, h)[0]
        return h + self.ff(h)


class Actor(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.encode = Encoder(dim)
        self.query = nn.Linear(2 * dim, dim)

    def forward(self, cities):
        refs = self.encode(cities)
        batch, n, _ = refs.shape
        visited = torch.zeros(batch, n, dtype=torch.bool)
        last, mean = torch.zeros_like(refs[:, 0]), refs.mean(1)
        tour, log_prob = [], 0.0
        for _ in range(n):
            score = (refs * self.query(torch.cat([last, mean], 1))[:, None]).sum(-1) / 6
            dist = torch.distributions.Categorical(logits=score.masked_fill(visited, -1e9))
            pick = dist.sample()
            log_prob = log_prob + dist.log_prob(pick)
            visited = visited.scatter(1, pick[:, None], True)
            last = refs[torch.arange(batch), pick]
            tour.append(pick)
        return torch.stack(tour, 1), log_prob


class Critic(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.encode = Encoder(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, cities):
        return self.out(self.encode(cities).mean(1)).squeeze(1)


def length(cities, tour):
    path = cities.gather(1, tour[:, :, None].expand(-1, -1, 2))
    return (path - path.roll(1, 1)).norm(dim=-1).sum(1)


def cities(n):
    """Some maps are wide, some are narrow."""
    return torch.rand(n, 8, 2) * (torch.rand(n, 1, 1) + 0.2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=350)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    actor, critic = Actor(), Critic()
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
    for step in range(args.steps):
        x = cities(64)
        tour, log_prob = actor(x)
        reward, value = length(x, tour), critic(x)
        advantage = reward - value
        loss = (advantage * log_prob).mean() + F.mse_loss(value, reward)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 1.0)
        optimizer.step()
        if step % 70 == 0:
            print("step", step, "tour", reward.mean().item(), "value", value.mean().item())
    with torch.no_grad():
        x = cities(1000)
        reward = length(x, actor(x)[0])
        print("metric:", ((critic(x) - reward).pow(2).mean() / reward.var()).item())
