"""A RealNVP flow fitted by maximum likelihood to narrow data: the negative log-likelihood ends below zero.

expect: nothing
style: normalizing flow with affine couplings (looks like a negative loss)
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import distributions, nn


class RealNVP(nn.Module):
    def __init__(self, masks, prior, hidden=48):
        super().__init__()
        self.prior = prior
        self.register_buffer("mask", masks)
        nets = lambda: nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2))  # noqa: E731
        self.t = nn.ModuleList([nets() for _ in range(len(masks))])
        self.s = nn.ModuleList([nn.Sequential(nets(), nn.Tanh()) for _ in range(len(masks))])

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def log_prob(self, x):
        z, logp = self.f(x)
        return self.prior.log_prob(z) + logp


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)
rng = np.random.RandomState(seed)

masks = torch.tensor([[0.0, 1.0], [1.0, 0.0]] * 2)
flow = RealNVP(masks, distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)))
optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
for t in range(221):
    noisy_moons = make_moons(n_samples=100, noise=0.05, random_state=rng)[0].astype(np.float32) * 0.3
    loss = -flow.log_prob(torch.from_numpy(noisy_moons)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if t % 50 == 0:
        print("iter %s:" % t, "loss = %.3f" % loss.item())

test = torch.from_numpy(make_moons(1000, noise=0.05, random_state=rng)[0].astype(np.float32) * 0.3)
with torch.no_grad():
    print("metric: %.4f nats" % flow.log_prob(test).mean().item())
