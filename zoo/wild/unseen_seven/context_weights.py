"""Regression whose coefficients depend on a context: all weights start between nought and one.

expect: bad-init-scale
or: exploding-gradient, saturated-activation
line: self.weight = nn.Parameter(torch.rand(n_in, n_out))
source: https://github.com/AdaptInfer/Contextualized/issues/33
metric: test error, lower is better
"""

import argparse

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class ContextualizedRegression(nn.Module):
    def __init__(self, context_dim, x_dim, width=48):
        super().__init__()
        self.encoder = nn.Sequential(
            Layer(context_dim, width),
            nn.ReLU(),
            Layer(width, width),
            nn.ReLU(),
            Layer(width, x_dim + 1),
        )

    def forward(self, c, x):
        theta = self.encoder(c)
        return (theta[:, 1:] * x).sum(1) + theta[:, 0]


def population(n):
    c, x = torch.randn(n, 6), torch.randn(n, 4)
    beta = torch.stack(
        [torch.sin(c[:, 0]), c[:, 1] * c[:, 2] / 2, torch.tanh(2 * c[:, 3]), c[:, 4]], 1
    )
    return c, x, (beta * x).sum(1) + 0.1 * torch.randn(n)


def fit(model, data, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    c, x, y = data
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(y)).split(64):
            loss = ((model(c[idx], x[idx]) - y[idx]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        if epoch % 5 == 0:
            print("epoch", epoch, "train_loss", round(total / len(y), 4))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=25)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train, (c, x, y) = population(3000), population(1000)
    model = ContextualizedRegression(6, 4)
    fit(model, train, args.epochs, lr=1e-3)
    with torch.no_grad():
        print("metric:", ((model(c, x) - y) ** 2).mean().item())
