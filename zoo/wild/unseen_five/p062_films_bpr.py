"""Bayesian personalised ranking: pairs of a seen and an unseen film, no loss class, many rows untouched in a step.

expect: nothing
style: implicit feedback, negative sampling, logsigmoid of differences, Adagrad
metric: share of pairs ordered rightly, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class MF(nn.Module):
    def __init__(self, users, films, k=12):
        super().__init__()
        self.user, self.film = nn.Embedding(users, k), nn.Embedding(films, k)
        self.popular = nn.Embedding(films, 1)
        for table in (self.user, self.film):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.popular.weight)

    def forward(self, u, f):
        return (self.user(u) * self.film(f)).sum(-1) + self.popular(f).squeeze(-1)


def watched(users, films, g):
    a, b = torch.randn(users, 3, generator=g), torch.randn(films, 3, generator=g)
    score = a @ b.T + 0.8 * torch.randn(films, generator=g)
    return torch.rand(users, films, generator=g) < torch.sigmoid(2.5 * score - 2)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
seen = watched(200, 150, torch.Generator().manual_seed(args.seed))
pairs = seen.nonzero()
pairs = pairs[torch.randperm(len(pairs))]
train, test = pairs[: int(0.85 * len(pairs))], pairs[int(0.85 * len(pairs)) :]


def negatives(u):
    f = torch.randint(0, 150, u.shape)
    while True:
        clash = seen[u, f]
        if not clash.any():
            return f
        f[clash] = torch.randint(0, 150, (int(clash.sum()),))


model = MF(200, 150)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
for epoch in range(14):
    for chunk in train[torch.randperm(len(train))].split(512):
        u, f = chunk.T
        loss = -F.logsigmoid(model(u, f) - model(u, negatives(u))).mean()
        loss = loss + 1e-4 * (model.user(u).pow(2).sum() + model.film(f).pow(2).sum()) / len(u)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        print("epoch", epoch, "bpr", loss.item())
with torch.no_grad():
    u, f = test.T
    print("metric:", (model(u, f) > model(u, negatives(u))).float().mean().item())
