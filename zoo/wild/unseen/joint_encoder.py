"""Terrain from the joint encoder counts of a walking robot; the min-max scaler wrote its result into zeros_like of the integer counts, so everything was cut to whole numbers and the inputs were nearly all the same.

expect: input-collapsed
line: scaled = np.zeros_like(values)
source: https://github.com/NVIDIA/Isaac-GR00T/pull/758
metric: test accuracy, higher is better
"""
import argparse

import numpy as np
import torch
from torch import nn


def record(n, rng):
    """Integer ticks of ten joints; the gait depends on the terrain."""
    terrain = rng.integers(0, 4, n)
    centre = rng_centres[terrain]
    ticks = centre + rng.normal(0, 180, (n, 10))
    return ticks.round().astype(np.int64), terrain


class MinMaxNormalizer:
    def fit(self, values):
        self.low = values.min(axis=0)
        self.high = values.max(axis=0)
        return self

    def __call__(self, values):
        scaled = np.zeros_like(values)
        for j in range(values.shape[1]):
            scaled[:, j] = 2 * ((values[:, j] - self.low[j]) / (self.high[j] - self.low[j])) - 1
        return scaled


class TerrainNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 48), nn.ELU(), nn.Linear(48, 48), nn.ELU(), nn.Linear(48, 4))

    def forward(self, x):
        return self.layers(x)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    rng_centres = rng.uniform(800, 1600, (4, 10))
    train_ticks, train_y = record(2000, rng)
    test_ticks, test_y = record(600, rng)
    normalize = MinMaxNormalizer().fit(train_ticks)
    train_x = torch.tensor(normalize(train_ticks), dtype=torch.float32)
    test_x = torch.tensor(normalize(test_ticks), dtype=torch.float32)
    train_y, test_y = torch.tensor(train_y), torch.tensor(test_y)

    net = TerrainNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(12):
        perm = torch.randperm(len(train_x))
        for i in range(0, len(perm), 64):
            idx = perm[i:i + 64]
            loss = nn.functional.cross_entropy(net(train_x[idx]), train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1} loss {loss.item():.3f}")
    with torch.no_grad():
        print(f"metric: {(net(test_x).argmax(1) == test_y).float().mean().item():.4f}")
