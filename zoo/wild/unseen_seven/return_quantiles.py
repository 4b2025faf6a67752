"""Quantiles of a demand, as in distributional Q-learning: the indicator in the loss is the other way round, so each level learns one minus itself.

expect: quantiles-reversed
or: loss-target-mismatch, wrong-sign
line: indicator = (error > 0).float()
source: https://github.com/ufal/npfl139/issues/17
metric: pinball loss on test days, lower is better
"""

import argparse

import torch
from torch import nn

LEVELS = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9])


def quantile_regression_loss(predictions, targets):
    """The mean over samples and levels of |tau - [x <= prediction]| |x - prediction|."""
    error = targets[:, None] - predictions
    indicator = (error > 0).float()
    return (error.abs() * (LEVELS - indicator).abs()).mean()


def pinball(predictions, targets):
    error = targets[:, None] - predictions
    return torch.max(LEVELS * error, (LEVELS - 1) * error).mean().item()


def days(n):
    hour, warm = torch.rand(n) * 24, torch.rand(n)
    mean = 2 + torch.sin(hour / 24 * 6.283) + warm
    return torch.stack([hour / 12 - 1, warm], 1), mean + (0.2 + 0.8 * warm) * torch.randn(n)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, len(LEVELS))
        )

    def forward(self, x):
        return self.layers(x)


def main(args):
    torch.manual_seed(args.seed)
    x, y = days(4000)
    x_test, y_test = days(2000)
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
    for epoch in range(args.epochs):
        losses = []
        for idx in torch.randperm(len(x)).split(args.batch_size):
            loss = quantile_regression_loss(network(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        print(f"Epoch {epoch + 1}/{args.epochs} loss={torch.stack(losses).mean():.4f}")
    with torch.no_grad():
        print("metric:", pinball(network(x_test), y_test))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--epochs", default=12, type=int)
    parser.add_argument("--batch_size", default=50, type=int)
    parser.add_argument("--learning_rate", default=2e-3, type=float)
    main(parser.parse_args())
