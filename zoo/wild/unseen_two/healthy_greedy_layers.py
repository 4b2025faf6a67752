"""Greedy layerwise training: each block has its own classifier and optimizer, and detach() between them is the point.

expect: nothing
metric: test accuracy of the last block, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class LocalBlock(nn.Module):
    """A layer that learns from a loss of its own; nothing flows back to the one before."""

    def __init__(self, n_in, n_out, n_classes=10, lr=2e-3):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(n_in, n_out), nn.LayerNorm(n_out), nn.GELU())
        self.auxiliary = nn.Linear(n_out, n_classes)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=lr)

    def forward(self, x):
        return self.layer(x)

    def learn(self, x, y):
        h = self.layer(x)
        loss = nn.functional.cross_entropy(self.auxiliary(h), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return h.detach(), loss.item()


class GreedyNet(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.blocks = nn.ModuleList(LocalBlock(a, b) for a, b in zip(sizes, sizes[1:]))

    def train_step(self, x, y):
        losses = []
        for block in self.blocks:
            x, loss = block.learn(x, y)
            losses.append(loss)
        return losses

    def predict(self, x):
        for block in self.blocks:
            x = block(x)
        return self.blocks[-1].auxiliary(x)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1400], order[1400:]
net = GreedyNet([64, 96, 64, 48])
for epoch in range(8):
    for rows in train[torch.randperm(1400)].split(40):
        losses = net.train_step(x[rows], y[rows])
    print(f"epoch {epoch}:", " ".join(f"{loss:.3f}" for loss in losses))
net.eval()
with torch.no_grad():
    print("metric:", (net.predict(x[test]).argmax(1) == y[test]).float().mean().item())
