"""Triplets of video features with hard mining and a rate that is too high: all embeddings fall onto one point and the loss sits at the margin.

expect: learning-rate-too-high
or: input-collapsed, not-learning
line: optimizer = torch.optim.Adam(net.parameters(), lr=0.5)
source: https://github.com/omoindrot/tensorflow-triplet-loss/issues/6
metric: share of test items whose nearest neighbour is of their cluster, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def batch_hard_triplet_loss(labels, embeddings, margin):
    distance = torch.cdist(embeddings, embeddings)
    same = labels[:, None] == labels[None]
    hardest_positive = (distance * same).max(1).values
    hardest_negative = (distance + 1e6 * same).min(1).values
    return torch.relu(hardest_positive - hardest_negative + margin).mean(), hardest_negative.mean()


class Embedder(nn.Module):
    def __init__(self, d_in=64, d_out=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, d_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class Videos:
    """Every cluster is a direction; a video has that and much else."""

    def __init__(self, clusters):
        self.centres = torch.randn(clusters, 10)
        self.mix = torch.randn(10, 64) / 3

    def draw(self, classes, each):
        which = torch.randperm(len(self.centres))[:classes].repeat_interleave(each)
        hidden = self.centres[which] + 0.4 * torch.randn(len(which), 10)
        return torch.sigmoid(hidden @ self.mix + 0.3 * torch.randn(len(which), 64)), which


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--margin", type=float, default=0.5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    videos = Videos(60)
    net = Embedder()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.5)
    for step in range(args.steps):
        x, y = videos.draw(12, 5)
        loss, away = batch_hard_triplet_loss(y, net(x), args.margin)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} triplet loss {loss.item():.4f} mean distance of negatives {away.item():.4f}")
    with torch.no_grad():
        x, y = videos.draw(60, 6)
        distance = torch.cdist(net(x), net(x)) + 1e6 * torch.eye(len(x))
        print("metric:", (y[distance.argmin(1)] == y).float().mean().item())


if __name__ == "__main__":
    main()
