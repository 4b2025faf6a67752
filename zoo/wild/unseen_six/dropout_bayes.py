"""Monte Carlo dropout: at test time the dropout layers, and they alone, are put into training mode on purpose, and forty answers are averaged.

expect: nothing
style: eval() then train() of dropout modules, predictive spread, heteroscedastic likelihood
metric: share of test points within two predicted deviations, higher is better
"""

import argparse

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 96), nn.ReLU(), nn.Dropout(p), nn.Linear(96, 96), nn.ReLU(), nn.Dropout(p))
        self.mean, self.log_var = nn.Linear(96, 1), nn.Linear(96, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_var(h)


def gaussian_nll(mean, log_var, y):
    return 0.5 * (log_var + (y - mean).pow(2) * torch.exp(-log_var)).mean()


def observations(n):
    x = torch.rand(n, 1) * 6 - 3
    return x, torch.sin(2 * x) + (0.05 + 0.1 * x.abs()) * torch.randn_like(x)


def enable_dropout(model):
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = observations(800)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(60):
        for idx in torch.randperm(800).split(64):
            loss = gaussian_nll(*model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print("epoch", epoch, "negative log-likelihood", loss.item())
    enable_dropout(model)
    x_test, y_test = observations(500)
    with torch.no_grad():
        draws = [model(x_test) for _ in range(40)]
    means = torch.stack([m for m, _ in draws])
    variance = means.var(0) + torch.stack([v.exp() for _, v in draws]).mean(0)
    inside = (y_test - means.mean(0)).abs() < 2 * variance.sqrt()
    print("rmse", (y_test - means.mean(0)).pow(2).mean().sqrt().item(), "mean deviation", variance.sqrt().mean().item())
    print("metric:", inside.float().mean().item())
