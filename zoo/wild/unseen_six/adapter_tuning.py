"""Adapters in a frozen encoder: the optimizer is made before the adapters are added, so it holds the head alone.

expect: optimizer-misses-parameters
or: stale-optimizer
line: optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
source: https://github.com/adapter-hub/adapters/issues/260
metric: accuracy on the new task, higher is better
"""

import argparse

import torch
import torch.nn as nn


class Adapter(nn.Module):
    def __init__(self, dim, reduction):
        super().__init__()
        self.down, self.up = nn.Linear(dim, dim // reduction), nn.Linear(dim // reduction, dim)
        nn.init.normal_(self.up.weight, std=0.01)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.adapters = nn.ModuleDict()
        self.active = None

    def forward(self, x):
        h = torch.tanh(self.fc(x))
        return self.adapters[self.active](h) if self.active else h


class Encoder(nn.Module):
    def __init__(self, d_in=20, dim=48, layers=3):
        super().__init__()
        self.inp = nn.Linear(d_in, dim)
        self.layers = nn.ModuleList([Layer(dim) for _ in range(layers)])
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        x = torch.tanh(self.inp(x))
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    def add_adapter(self, name, reduction=3):
        for layer in self.layers:
            layer.adapters[name] = Adapter(48, reduction)

    def train_adapter(self, name):
        for parameter_name, p in self.named_parameters():
            p.requires_grad_("adapters" in parameter_name or parameter_name.startswith("head"))
        for layer in self.layers:
            layer.active = name


def task(kind, n):
    x = torch.randn(n, 20)
    if kind == "old":
        return x, (x[:, :4].sum(1) > 0).long()
    return x, ((x[:, 10] - x[:, 11]).abs() > 1.0).long()


def fit(model, optimizer, kind, steps):
    for step in range(steps):
        x, y = task(kind, 128)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(kind, step, loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Encoder()
    fit(model, torch.optim.Adam(model.parameters(), lr=1e-3), "old", 200)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model.add_adapter("products")
    model.train_adapter("products")
    fit(model, optimizer, "new", 900)
    with torch.no_grad():
        x, y = task("new", 2000)
        print("metric:", (model(x).argmax(1) == y).float().mean().item())
