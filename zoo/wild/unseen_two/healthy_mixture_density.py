"""A mixture density network: its loss is the negative log of a density and sinks far below zero.

expect: nothing
metric: mean log likelihood on test data, higher is better
"""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn


class MDN(nn.Module):
    def __init__(self, n_hidden=32, n_gaussians=4):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh(), nn.Linear(n_hidden, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        h = self.z_h(x)
        return torch.log_softmax(self.z_pi(h), -1), self.z_mu(h), self.z_sigma(h).clamp(-6, 3)


def mdn_loss(log_pi, mu, log_sigma, y):
    log_prob = -0.5 * ((y - mu) / log_sigma.exp()) ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log_pi + log_prob, dim=1).mean()


def inverse_problem(n, rng):
    """Two branches with very little noise: which arm angle reaches x?"""
    x = rng.uniform(0.05, 0.95, n)
    sign = rng.choice([-1.0, 1.0], n)
    y = 0.1 * sign * np.sqrt(x) + 0.002 * rng.normal(size=n)
    return torch.tensor(x, dtype=torch.float32)[:, None], torch.tensor(y, dtype=torch.float32)[:, None]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    network = MDN()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1200)
    for epoch in range(1200):
        x, y = inverse_problem(128, rng)
        loss = mdn_loss(*network(x), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if epoch % 120 == 0:
            print(epoch, loss.item())
    with torch.no_grad():
        x, y = inverse_problem(2000, rng)
        print("metric:", -mdn_loss(*network(x), y).item())


if __name__ == "__main__":
    main()
