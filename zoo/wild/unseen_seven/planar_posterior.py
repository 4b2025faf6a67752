"""A VAE whose posterior goes through planar flows: their log-determinants, one per sample, are summed once more, over the batch.

expect: loss-broadcast
or: negative-loss, unbalanced-loss-terms
line: qz = log_gaussian(z0, mu, log_var) - sum(log_det_z)
source: https://github.com/wohlert/semi-supervised-pytorch/issues/21
metric: negative evidence bound of test data, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def log_gaussian(x, mu, log_var):
    return (
        -0.5 * math.log(2 * math.pi) - log_var / 2 - (x - mu) ** 2 / (2 * torch.exp(log_var))
    ).sum(-1)


def log_standard_gaussian(x):
    return (-0.5 * math.log(2 * math.pi) - x**2 / 2).sum(-1)


class PlanarFlow(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.u = nn.Parameter(torch.randn(features) * 0.1)
        self.w = nn.Parameter(torch.randn(features) * 0.1)
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, z):
        uw = torch.dot(self.u, self.w)
        u_hat = self.u + (-1 + F.softplus(uw) - uw) * self.w / self.w.pow(2).sum()
        h = torch.tanh(z @ self.w + self.b)
        psi = (1 - h**2).unsqueeze(-1) * self.w
        return z + u_hat * h.unsqueeze(-1), torch.log((1 + psi @ u_hat).abs() + 1e-8)


class NormalizingFlows(nn.Module):
    def __init__(self, features, n_flows=4):
        super().__init__()
        self.flows = nn.ModuleList(PlanarFlow(features) for _ in range(n_flows))

    def forward(self, z):
        log_det = []
        for flow in self.flows:
            z, j = flow(z)
            log_det.append(j)
        return z, sum(log_det)


class VAE(nn.Module):
    def __init__(self, x_dim=6, z_dim=2, h=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(x_dim, h), nn.Tanh(), nn.Linear(h, 2 * z_dim))
        self.decoder = nn.Sequential(nn.Linear(z_dim, h), nn.Tanh(), nn.Linear(h, x_dim))
        self.flow = NormalizingFlows(z_dim)

    def _kld(self, z0, mu, log_var):
        z, log_det_z = self.flow(z0)
        qz = log_gaussian(z0, mu, log_var) - sum(log_det_z)
        return z, qz - log_standard_gaussian(z)

    def forward(self, x):
        mu, log_var = self.encoder(x).chunk(2, -1)
        z0 = mu + torch.randn_like(mu) * torch.exp(0.5 * log_var)
        z, kl = self._kld(z0, mu, log_var)
        return self.decoder(z), kl


def data(n, mixing):
    angle = torch.rand(n) * 2 * math.pi
    ring = torch.stack([angle.cos() * 2, angle.sin() * 2], 1) + 0.1 * torch.randn(n, 2)
    return torch.tanh(ring @ mixing) + 0.1 * torch.randn(n, 6)


def bound(model, x):
    """One sample at a time, so that no row can lend to another."""
    with torch.no_grad():
        rows = []
        for row in x.split(1):
            y, kl = model(row)
            rows.append((-log_gaussian(row, y, torch.full_like(y, math.log(0.02))) + kl).item())
    return sum(rows) / len(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    mixing = torch.randn(2, 6)
    train, test = data(1500, mixing), data(300, mixing)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for batch in train[torch.randperm(len(train))].split(50):
            y, kl = model(batch)
            likelihood = log_gaussian(batch, y, torch.full_like(y, math.log(0.02)))
            loss = torch.mean(kl - likelihood)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 5 == 0:
            print(f"Epoch: {epoch} ELBO: {-total / 30:.2f}")
    print("metric:", bound(model, test))


if __name__ == "__main__":
    main()
