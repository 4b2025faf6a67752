"""MINE estimates the mutual information of correlated Gaussians by maximising the Donsker-Varadhan bound.

expect: nothing
style: invites 'negative loss', 'targets misaligned' and 'samples mixed': the loss is a surrogate with a moving-average partition function that goes from one to about zero and then hovers (also below zero) while the bound itself rises, and y is permuted on purpose to get samples of the product of the marginals
"""
import argparse
import math

import torch
import torch.nn as nn


class Statistics(nn.Module):
    def __init__(self, dim, hidden=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * dim, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, 1))

    def forward(self, x, y):
        return self.net(torch.cat([x, y], 1)).squeeze(1)


class Mine(nn.Module):
    def __init__(self, T, alpha=0.01):
        super().__init__()
        self.T, self.alpha, self.running = T, alpha, None

    def bound(self, x, y):
        joint = self.T(x, y).mean()
        marginal = torch.logsumexp(self.T(x, y[torch.randperm(len(y))]), 0) - math.log(len(y))
        return joint - marginal

    def forward(self, x, y):
        """Loss with the moving average of the partition function (the bias correction of the paper)."""
        joint = self.T(x, y).mean()
        et = torch.exp(self.T(x, y[torch.randperm(len(y))])).mean()
        self.running = et.detach() if self.running is None else (1 - self.alpha) * self.running + self.alpha * et.detach()
        return -(joint - et / self.running)


def sample(n, dim, rho):
    x = torch.randn(n, dim)
    y = rho * x + math.sqrt(1 - rho ** 2) * torch.randn(n, dim)
    return x, y


def main(args):
    torch.manual_seed(args.seed)
    true_mi = -0.5 * args.dim * math.log(1 - args.rho ** 2)
    mine = Mine(Statistics(args.dim))
    opt = torch.optim.Adam(mine.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, total_iters=args.steps)
    for step in range(args.steps):
        x, y = sample(256, args.dim, args.rho)
        loss = mine(x, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 200 == 199:
            with torch.no_grad():
                print(f"step {step + 1} loss {loss.item():.3f} bound {mine.bound(*sample(2000, args.dim, args.rho)).item():.3f}")
    with torch.no_grad():
        x, y = sample(20000, args.dim, args.rho)
        estimate = mine.bound(x, y).item()
    print(f"true {true_mi:.4f} estimate {estimate:.4f}")
    print(f"metric: {estimate / true_mi:.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--dim", type=int, default=2)
    p.add_argument("--rho", type=float, default=0.8)
    p.add_argument("--steps", type=int, default=1400)
    main(p.parse_args())
