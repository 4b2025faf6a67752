"""A GAN with hinge losses and spectral norm draws four spots: neither loss falls, and that is as it should be.

expect: nothing
style: spectral_norm, two steps of the discriminator for one of the generator, frozen discriminator parameters in the generator step
metric: share of good samples times share of spots that are hit, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

SPOTS = torch.tensor([[math.cos(k * math.pi / 2), math.sin(k * math.pi / 2)] for k in range(4)]) * 1.5


def real(n):
    return SPOTS[torch.randint(4, (n,))] + 0.08 * torch.randn(n, 2)


def mlp(sizes, wrap=lambda m: m):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [wrap(nn.Linear(i, o)), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def set_requires_grad(net, flag):
    for p in net.parameters():
        p.requires_grad = flag


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1200)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    G, D = mlp([8, 64, 64, 2]), mlp([2, 64, 64, 1], spectral_norm)
    opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.0, 0.9))
    for step in range(args.steps):
        set_requires_grad(D, True)
        for _ in range(2):
            with torch.no_grad():
                fake = G(torch.randn(128, 8))
            loss_d = F.relu(1 - 4 * D(real(128))).mean() + F.relu(1 + 4 * D(fake)).mean()
            opt_d.zero_grad()
            loss_d.backward()
            opt_d.step()
        set_requires_grad(D, False)
        loss_g = -4 * D(G(torch.randn(128, 8))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if step % 200 == 0:
            print(f"step {step} D {loss_d.item():.3f} G {loss_g.item():.3f}")
    with torch.no_grad():
        distance, nearest = torch.cdist(G(torch.randn(2000, 8)), SPOTS).min(1)
        good = distance < 0.5
        print("metric:", good.float().mean().item() * len(nearest[good].unique()) / 4)
