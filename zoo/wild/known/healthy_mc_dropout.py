"""Monte-Carlo dropout: the dropout layers stay on in the test on purpose and thirty passes are averaged.

expect: nothing
style: uncertainty by dropout at test time, model.eval() and then dropout.train() (looks like evaluation in train mode)
"""

import argparse

import numpy as np
import torch
from torch import nn


class BayesianRegressor(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)


def enable_dropout(model):
    """Function to enable the dropout layers during test-time"""
    for m in model.modules():
        if m.__class__.__name__.startswith("Dropout"):
            m.train()


@torch.no_grad()
def get_monte_carlo_predictions(model, x, forward_passes=30):
    model.eval()
    enable_dropout(model)
    samples = torch.stack([model(x) for _ in range(forward_passes)])
    return samples.mean(0), samples.std(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    x = torch.cat([torch.rand(300, 1) * 2 - 3, torch.rand(300, 1) * 2 + 1])
    y = torch.sin(2 * x) + 0.1 * torch.randn_like(x)
    model = BayesianRegressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
    for epoch in range(30):
        model.train()
        losses = []
        for rows in torch.randperm(600).split(30):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 6 == 0:
            print("epoch", epoch, "mse", np.mean(losses))
    grid = torch.cat([torch.linspace(-3, -1, 100), torch.linspace(1, 3, 100)]).unsqueeze(1)
    mean, _ = get_monte_carlo_predictions(model, grid)
    _, inside = get_monte_carlo_predictions(model, grid)
    _, outside = get_monte_carlo_predictions(model, torch.linspace(5, 7, 100).unsqueeze(1))
    print("uncertainty inside %.3f, outside %.3f" % (inside.mean().item(), outside.mean().item()))
    print("metric: %.4f" % nn.functional.mse_loss(mean, torch.sin(2 * grid)).item())


main()
