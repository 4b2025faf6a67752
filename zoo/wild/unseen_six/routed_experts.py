"""A mixture of four experts of which each token visits one; a small extra loss keeps all of them at work.

expect: nothing
style: top-1 routing with index_add, auxiliary balance loss, residual connection
metric: coefficient of determination on new points, higher is better
"""

import argparse

import torch
import torch.nn as nn


class SwitchLayer(nn.Module):
    def __init__(self, dim, experts=4):
        super().__init__()
        self.router = nn.Linear(dim, experts)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(experts)])

    def forward(self, x):
        p = self.router(x).softmax(-1)
        weight, choice = p.max(-1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows = (choice == k).nonzero().squeeze(1)
            if len(rows):
                out.index_add_(0, rows, weight[rows, None] * expert(x[rows]))
        share = torch.nn.functional.one_hot(choice, len(self.experts)).float().mean(0)
        return x + out, len(self.experts) * (share * p.mean(0)).sum()


class Model(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.inp, self.moe, self.out = nn.Linear(3, dim), SwitchLayer(dim), nn.Linear(dim, 1)

    def forward(self, x):
        h, balance = self.moe(torch.tanh(self.inp(x)))
        return self.out(h).squeeze(1), balance


def terrain(n):
    """Four regions, each with a wave of its own."""
    x = torch.rand(n, 3) * 2 - 1
    region = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
    frequency = torch.tensor([1.0, 2.0, 3.0, -2.0])[region]
    return x, torch.sin(frequency * 2 * x[:, 2]) + 0.5 * region


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, args.steps)
    for step in range(args.steps):
        x, y = terrain(128)
        guess, balance = model(x)
        loss = (guess - y).pow(2).mean() + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 200 == 0:
            print("step", step, "loss", loss.item(), "balance", balance.item())
    with torch.no_grad():
        x, y = terrain(2000)
        print("metric:", (1 - (model(x)[0] - y).pow(2).mean() / y.var()).item())
