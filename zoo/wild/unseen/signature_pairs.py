"""Siamese network on pairs of signatures with the Euclidean distance; some genuine pairs are two copies of one scan, their distance is exactly zero, the square root has no gradient there and the weights became nan.

expect: non-finite
line: torch.sqrt(torch.sum(torch.square(x - y)
source: https://github.com/keras-team/keras/issues/9097
metric: share of test pairs judged rightly, higher is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def euclidean_distance(x, y):
    return torch.sqrt(torch.sum(torch.square(x - y), dim=1))


def contrastive_loss(same, distance, margin=1.0):
    return torch.mean(same * distance.pow(2) + (1 - same) * F.relu(margin - distance).pow(2))


class Siamese(nn.Module):
    def __init__(self, n_in=36, n_out=16):
        super().__init__()
        self.base = nn.Sequential(
            nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_out)
        )

    def forward(self, a, b):
        return euclidean_distance(self.base(a), self.base(b))


class PairSource:
    def __init__(self, writers=30, scans=100):
        style = torch.randn(writers, 1, 36)
        self.scans = style + 0.5 * torch.randn(writers, scans, 36)

    def draw(self, n):
        w, k, _ = self.scans.shape
        same = (torch.rand(n) < 0.5).float()
        first = torch.randint(0, w, (n,))
        second = torch.where(same.bool(), first, (first + torch.randint(1, w, (n,))) % w)
        a = self.scans[first, torch.randint(0, k, (n,))]
        b = self.scans[second, torch.randint(0, k, (n,))]
        return a, b, same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    source = PairSource()
    model = Siamese()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for step in range(1, 401):
        a, b, same = source.draw(4)
        loss = contrastive_loss(same, model(a, b))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 80 == 0:
            print("step", step, "loss", loss.item())
    with torch.no_grad():
        a, b, same = source.draw(1000)
        judged_same = model(a, b) < 0.5
    print("metric: %.4f" % (judged_same == same.bool()).float().mean().item())


if __name__ == "__main__":
    main()
