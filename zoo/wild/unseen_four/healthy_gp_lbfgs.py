"""Gaussian-process regression: hyperparameters by LBFGS on the marginal likelihood, many restarts.

expect: nothing
style: no network, softplus-parameterised scalars, closure, full batch on purpose, the loss goes below zero rightly
"""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


class ExactGP(nn.Module):
    def __init__(self, dims, init):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.full((dims,), init) + 0.1 * torch.randn(dims))
        self.raw_outputscale = nn.Parameter(torch.tensor(init))
        self.raw_noise = nn.Parameter(torch.tensor(-2.0))
        self.mean = nn.Parameter(torch.zeros(()))

    @property
    def noise(self):
        return F.softplus(self.raw_noise) + 1e-5

    def kernel(self, a, b):
        scale = F.softplus(self.raw_lengthscale)
        sq = ((a[:, None] / scale - b[None] / scale) ** 2).sum(-1)
        return F.softplus(self.raw_outputscale) * torch.exp(-0.5 * sq)

    def factor(self, x):
        return torch.linalg.cholesky(self.kernel(x, x) + self.noise * torch.eye(len(x)))

    def forward(self, x, y):
        """Negative log marginal likelihood per point."""
        L = self.factor(x)
        r = (y - self.mean)[:, None]
        alpha = torch.cholesky_solve(r, L)
        nll = 0.5 * (r * alpha).sum() + L.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)
        return nll / len(x)

    @torch.no_grad()
    def predict(self, x, y, new):
        alpha = torch.cholesky_solve((y - self.mean)[:, None], self.factor(x))
        return self.mean + (self.kernel(new, x) @ alpha).squeeze(1)


def fit(x, y, init):
    gp = ExactGP(x.shape[1], init)
    optimizer = torch.optim.LBFGS(gp.parameters(), lr=0.5, max_iter=8, history_size=20, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = gp(x, y)
        loss.backward()
        return loss

    for i in range(40):
        loss = optimizer.step(closure)
    with torch.no_grad():
        final = gp(x, y).item()
    print(f"restart {init:+.1f}: first of last step {loss.item():.4f}, final {final:.4f}, noise {gp.noise.item():.5f}")
    return final, gp


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    def f(x):
        return torch.sin(3 * x[:, 0]) * x[:, 1] + 0.5 * x[:, 2] ** 2

    x, new = torch.rand(220, 4) * 2 - 1, torch.rand(400, 4) * 2 - 1
    y = f(x) + 0.03 * torch.randn(220)
    mu, sd = y.mean(), y.std()
    runs = [fit(x, (y - mu) / sd, init) for init in (0.0, 1.0, 2.0)]
    _, best = min(runs, key=lambda r: r[0])
    pred = best.predict(x, (y - mu) / sd, new) * sd + mu
    truth = f(new)
    r2 = 1 - ((pred - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
    print(f"metric: {r2.item():.4f}")


if __name__ == "__main__":
    main()
