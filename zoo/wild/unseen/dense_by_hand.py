"""Digit classifier from dense layers written by hand; the weights were drawn with torch.randn and no scale, the scores started in the ten thousands and the training spent itself on bringing them down.

expect: bad-init-scale
line: self.w = nn.Parameter(torch.randn(n_in, n_out))
source: https://github.com/pytorch-tpu/transformers/pull/26
metric: test accuracy, higher is better
"""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Dense(nn.Module):
    """y = act(x W + b), like in the lecture."""

    def __init__(self, n_in, n_out, act=None):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n_in, n_out))
        self.b = nn.Parameter(torch.zeros(n_out))
        self.act = act

    def forward(self, x):
        z = x @ self.w + self.b
        return z if self.act is None else self.act(z)


class DeepNet(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList()
        for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
            last = i == len(sizes) - 2
            self.layers.append(Dense(a, b, None if last else torch.relu))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=8)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16 - 0.3
    y = torch.tensor(digits.target)
    perm = torch.randperm(len(x))
    x, y = x[perm], y[perm]

    net = DeepNet([64, 96, 96, 96, 96, 10])
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        seen = 0.0
        for i in range(0, 1400, 50):
            loss = nn.functional.cross_entropy(net(x[i:i + 50]), y[i:i + 50])
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += loss.item() / 28
        print(f"epoch {epoch:2d} loss {seen:.3f}")

    with torch.no_grad():
        acc = (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item()
    print(f"metric: {acc:.4f}")


main()
