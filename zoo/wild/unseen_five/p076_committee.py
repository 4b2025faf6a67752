"""A committee of five networks in a plain list, each with an optimizer of its own; their spread says what they do not know.

expect: nothing
style: deep ensemble, Gaussian likelihood, models in a Python list on purpose
metric: mean log likelihood on test data, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn


def member():
    return nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 2))


def gaussian(out):
    mean, raw = out.chunk(2, -1)
    return mean, nn.functional.softplus(raw) + 0.02


def nll(out, y):
    mean, std = gaussian(out)
    return (0.5 * ((y - mean) / std) ** 2 + std.log() + 0.5 * math.log(2 * math.pi)).mean()


def measure(n):
    x = torch.rand(n, 1) * 6 - 3
    return x, torch.sin(2 * x) * x / 2 + (0.05 + 0.1 * (x + 3) / 6) * torch.randn(n, 1)


def main(seed):
    torch.manual_seed(seed)
    x, y = measure(800)
    models = [member() for _ in range(5)]
    optimizers = [torch.optim.Adam(m.parameters(), lr=5e-3) for m in models]
    for epoch in range(25):
        for model, optimizer in zip(models, optimizers):
            for i in torch.randperm(800).split(80):
                optimizer.zero_grad()
                loss = nll(model(x[i]), y[i])
                loss.backward()
                optimizer.step()
        if epoch % 5 == 0:
            print("epoch", epoch, "last member", loss.item())
    with torch.no_grad():
        x, y = measure(2000)
        parts = [gaussian(m(x)) for m in models]
        mean = torch.stack([p[0] for p in parts]).mean(0)
        var = torch.stack([p[1] ** 2 + p[0] ** 2 for p in parts]).mean(0) - mean**2
        return (-0.5 * (y - mean) ** 2 / var - 0.5 * (2 * math.pi * var).log()).mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    print("metric:", main(parser.parse_args().seed))
