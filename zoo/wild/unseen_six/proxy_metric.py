"""Metric learning with proxies: classes of the test were never seen, and what counts is whose neighbour is whose.

expect: nothing
style: learnable proxies with a rate of their own, normalised embeddings, recall at one
metric: recall at 1 on unseen classes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class ProxyNCA(nn.Module):
    def __init__(self, classes, dim, scale=8.0):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, dim))
        self.scale = scale

    def forward(self, z, y):
        distance = torch.cdist(F.normalize(z, dim=1), F.normalize(self.proxies, dim=1)).pow(2)
        return F.cross_entropy(-self.scale * distance, y)


class Things:
    """A thing has a hidden code; features are a random nonlinear view with much else in it."""

    def __init__(self, classes):
        self.codes = torch.randn(classes, 6)
        self.a, self.b = torch.randn(6, 40), torch.randn(10, 40)

    def draw(self, y):
        return torch.tanh((self.codes[y] + 0.15 * torch.randn(len(y), 6)) @ self.a / 2.5 + torch.randn(len(y), 10) @ self.b / 3)


def recall_at_1(model, x, y):
    with torch.no_grad():
        z = F.normalize(model(x), dim=1)
    near = (z @ z.T - 2 * torch.eye(len(z))).argmax(1)
    return (y[near] == y).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1200)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    things = Things(100)
    model = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 24))
    criterion = ProxyNCA(80, 24)
    optimizer = torch.optim.AdamW([{"params": model.parameters(), "lr": 2e-3}, {"params": criterion.parameters(), "lr": 2e-2, "weight_decay": 0.0}])
    y_test = torch.arange(80, 100).repeat_interleave(15)
    x_test = things.draw(y_test)
    print("recall of the raw features", recall_at_1(nn.Identity(), x_test, y_test))
    for step in range(args.steps):
        y = torch.randint(80, (128,))
        loss = criterion(model(things.draw(y)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print("step", step, "loss", loss.item(), "recall", recall_at_1(model, x_test, y_test))
    print("metric:", recall_at_1(model, x_test, y_test))
