"""Embeddings with the hardest triplets of a batch and a rate of 0.3: they collapse to one point, and the loss stays at the margin.

expect: learning-rate-too-high
line: optimizer = torch.optim.Adam(net.parameters(), lr=0.3)
source: https://github.com/VisualComputingInstitute/triplet-reid/issues/30
metric: share of test pictures whose nearest neighbour is of the same person, higher is better
"""

import argparse

import torch
import torch.nn as nn


def batch_hard(embeddings, pids, margin=0.2):
    dists = torch.cdist(embeddings, embeddings)
    same = pids[:, None] == pids[None, :]
    furthest_positive = torch.where(same, dists, torch.zeros_like(dists)).max(1).values
    closest_negative = torch.where(same, torch.full_like(dists, 1e6), dists).min(1).values
    return torch.relu(furthest_positive - closest_negative + margin).mean()


class Trunk(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, dim))

    def forward(self, x):
        return self.body(x)


class People:
    def __init__(self, n, g):
        self.who = torch.randn(n, 6, generator=g)
        self.mix = torch.randn(12, 32, generator=g)

    def look(self, pids, g):
        pose = 1.2 * torch.randn(len(pids), 6, generator=g)
        return torch.tanh(torch.cat([self.who[pids], pose], 1) @ self.mix * 0.4)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--iterations", type=int, default=600)
args = parser.parse_args()
torch.manual_seed(args.seed)
g = torch.Generator().manual_seed(args.seed)
people = People(60, g)
net = Trunk()
optimizer = torch.optim.Adam(net.parameters(), lr=0.3)
for it in range(args.iterations):
    pids = torch.randperm(40, generator=g)[:18].repeat_interleave(4)
    loss = batch_hard(net(people.look(pids, g)), pids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 100 == 0:
        print("iter:%6d, loss: %.4f" % (it, loss.item()))
with torch.no_grad():
    pids = torch.arange(40, 60).repeat_interleave(10)
    dists = torch.cdist(*[net(people.look(pids, g))] * 2) + 1e6 * torch.eye(len(pids))
    print("metric:", (pids[dists.argmin(1)] == pids).float().mean().item())
