"""A flow of affine couplings learns two moons by likelihood; its loss falls below zero, and half of each input passes unchanged.

expect: nothing
style: custom layers with log determinants, ModuleList, negative log likelihood
metric: mean log likelihood of test data, higher is better
"""

import argparse
import math

import torch
from sklearn.datasets import make_moons
from torch import nn


class Coupling(nn.Module):
    def __init__(self, swap, width=40):
        super().__init__()
        self.swap = swap
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.swap:
            a, b = b, a
        log_scale, shift = self.net(a).chunk(2, 1)
        log_scale = torch.tanh(log_scale) * 2
        b = b * log_scale.exp() + shift
        y = torch.cat([b, a] if self.swap else [a, b], 1)
        return y, log_scale.squeeze(1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(i % 2 == 1) for i in range(depth)])

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return total - 0.5 * x.pow(2).sum(1) - math.log(2 * math.pi)


def data(n, seed):
    x = torch.tensor(make_moons(n, noise=0.05, random_state=seed)[0], dtype=torch.float32)
    return (x - torch.tensor([0.5, 0.25])) / 3


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
train, test = data(2000, args.seed), data(1000, args.seed + 1)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)
for epoch in range(45):
    for batch in train[torch.randperm(len(train))].split(128):
        loss = -flow.log_prob(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
    scheduler.step()
    if epoch % 9 == 0:
        print(f"epoch {epoch}  nll {loss.item():.3f}")
with torch.no_grad():
    print("metric:", flow.log_prob(test).mean().item())
