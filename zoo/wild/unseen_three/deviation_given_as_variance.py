"""GaussianNLLLoss wants the variance and is given the standard deviation: the forecast is far too sure of itself.

expect: output-misfits-loss
line: self.nll(mu, target, sigma)
source: https://github.com/unit8co/darts/pull/1162
metric: test negative log-likelihood, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class GaussianLikelihood:
    def __init__(self):
        self.nll = nn.GaussianNLLLoss()

    def parameters_of(self, output):
        return output[..., 0], F.softplus(output[..., 1]) + 1e-4

    def loss(self, output, target):
        mu, sigma = self.parameters_of(output)
        return self.nll(mu, target, sigma)

    def distribution(self, output):
        mu, sigma = self.parameters_of(output)
        return torch.distributions.Normal(mu, sigma)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        h, _ = self.rnn(x.unsqueeze(-1))
        return self.head(h)


def load_curve(n, generator):
    """Hourly load with a daily rhythm; by day it is less certain than by night."""
    t = torch.arange(n).float()
    noise = 0.05 + 0.15 * (torch.sin(2 * math.pi * t / 24) > 0).float()
    return torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(2 * math.pi * t / 12) + noise * torch.randn(n, generator=generator)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--window", type=int, default=36)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    series = load_curve(4000, g)
    train, test = series[:3200], series[3200:]

    model, likelihood = Forecaster(), GaussianLikelihood()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(args.steps):
        starts = torch.randint(0, len(train) - args.window - 1, (32,))
        chunk = torch.stack([train[s : s + args.window + 1] for s in starts])
        loss = likelihood.loss(model(chunk[:, :-1]), chunk[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}")

    model.eval()
    chunk = torch.stack([test[s : s + args.window + 1] for s in range(0, len(test) - args.window - 1, 5)])
    with torch.no_grad():
        score = -likelihood.distribution(model(chunk[:, :-1])).log_prob(chunk[:, 1:])[:, 12:].mean()
    print("metric:", score.item())


if __name__ == "__main__":
    main()
