"""Lookahead by hand: every five steps the weights are pulled half the way back to slow copies of themselves.

expect: nothing
metric: root mean squared error on test data, lower is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1


class Lookahead:
    def __init__(self, base, k=5, alpha=0.5):
        self.base, self.k, self.alpha = base, k, alpha
        self.slow = [[p.detach().clone() for p in group["params"]] for group in base.param_groups]
        self.steps = 0

    def zero_grad(self):
        self.base.zero_grad()

    @torch.no_grad()
    def step(self):
        self.base.step()
        self.steps += 1
        if self.steps % self.k:
            return
        for group, slow in zip(self.base.param_groups, self.slow):
            for p, q in zip(group["params"], slow):
                q.add_(p - q, alpha=self.alpha)
                p.copy_(q)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.layers(x)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    x, y = make_friedman1(3000, n_features=10, noise=0.5, random_state=seed)
    x = torch.tensor(2 * x - 1, dtype=torch.float32)
    y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
    model = Regressor()
    optimizer = Lookahead(torch.optim.RAdam(model.parameters(), lr=1e-2))
    for epoch in range(12):
        total = 0.0
        for rows in torch.randperm(2400).split(60):
            loss = nn.functional.huber_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch:02d} huber {total / 40:.5f}")
    with torch.no_grad():
        print("metric:", (model(x[2400:]) - y[2400:]).pow(2).mean().sqrt().item())


main()
